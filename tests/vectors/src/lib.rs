// SPDX-License-Identifier: GPL-2.0
//! Builds `vectors.c` from the kernel's source and reads what it prints.
//!
//! Everything is made anew at each run of the tests, from the source tree that the environment
//! variable `IB_CM_KERNEL_SOURCE` names; nothing of the kernel is kept here.

use std::env;
use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;

/// Definitions that `vectors.c` needs before the messages: the file, and how each one begins.
const TYPES: &[(&str, &[&str])] = &[
    (
        "include/rdma/ib_mad.h",
        &[
            "#define IB_MGMT_BASE_VERSION",
            "#define IB_MGMT_CLASS_CM",
            "#define IB_MGMT_METHOD_SEND",
            "struct ib_mad_hdr {",
        ],
    ),
    (
        "include/uapi/rdma/ib_user_ioctl_verbs.h",
        &["enum ib_uverbs_qp_type {"],
    ),
    (
        "include/rdma/ib_verbs.h",
        &["enum ib_qp_type {", "union ib_gid {"],
    ),
    (
        "include/rdma/ib_cm.h",
        &[
            "enum ib_cm_data_size {",
            "enum ib_cm_rej_reason {",
            "enum ib_cm_apr_status {",
            "enum ib_cm_sidr_status {",
            "#define CM_REQ_ATTR_ID",
            "#define CM_MRA_ATTR_ID",
            "#define CM_REJ_ATTR_ID",
            "#define CM_REP_ATTR_ID",
            "#define CM_RTU_ATTR_ID",
            "#define CM_DREQ_ATTR_ID",
            "#define CM_DREP_ATTR_ID",
            "#define CM_SIDR_REQ_ATTR_ID",
            "#define CM_SIDR_REP_ATTR_ID",
            "#define CM_LAP_ATTR_ID",
            "#define CM_APR_ATTR_ID",
        ],
    ),
];

/// Functions that `vectors.c` asks, which need the messages.
const FUNCTIONS: &[(&str, &[&str])] = &[
    (
        "include/rdma/opa_addr.h",
        &[
            "#define\tOPA_SPECIAL_OUI",
            "#define OPA_MAKE_ID",
            "static inline bool ib_is_opa_gid(",
            "static inline u32 opa_get_lid_from_gid(",
        ],
    ),
    (
        "drivers/infiniband/core/cm_msgs.h",
        &[
            "#define IB_CM_CLASS_VERSION",
            "static inline enum ib_qp_type cm_req_get_qp_type(",
            "static inline void cm_req_set_qp_type(",
            "enum cm_msg_response {",
            "static inline __be32 cm_rep_get_qpn(",
        ],
    ),
    (
        "drivers/infiniband/core/cm.c",
        &[
            "enum {\n\tCM_REQ_COUNTER,",
            "static const char * const ibcm_rej_reason_strs[] = {",
            "const char *__attribute_const__ ibcm_reject_msg(",
            "static inline int cm_convert_to_ms(",
            "static u8 cm_ack_timeout(",
            "static bool cm_req_has_alt_path(",
            "static void cm_format_mad_hdr(",
            "static void cm_format_mad_ece_hdr(",
        ],
    ),
];

/// A built `vectors.c`.
pub struct Vectors {
    program: PathBuf,
}

impl Vectors {
    /// Builds `vectors.c` in `directory`, which is made if it is absent. `constants` are lines of
    /// `CONSTANT(name)` or `BE16_CONSTANT(name)` for it to print as facts.
    pub fn build(directory: &Path, constants: &str) -> Self {
        let kernel = kernel_source();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::create_dir_all(directory).expect("the build directory can be made");
        for (name, text) in [
            ("kernel.inc", definitions(&kernel, TYPES)),
            ("functions.inc", definitions(&kernel, FUNCTIONS)),
            ("fields.inc", fields(&kernel)),
            ("constants.inc", constants.to_owned()),
        ] {
            fs::write(directory.join(name), text).expect("the build directory can be written");
        }

        let program = directory.join("vectors");
        let compiler = env::var("CC").unwrap_or_else(|_| "gcc".to_owned());
        let status = Command::new(&compiler)
            .args(["-std=gnu11", "-O2", "-fno-strict-aliasing", "-w", "-o"])
            .arg(&program)
            .arg("-I")
            .arg(directory)
            .arg("-I")
            .arg(here.join("shim"))
            .arg("-I")
            .arg(kernel.join("include"))
            .arg(here.join("vectors.c"))
            .status()
            .unwrap_or_else(|error| panic!("cannot run the C compiler {compiler}: {error}"));
        assert!(status.success(), "{compiler} cannot compile vectors.c");
        Self { program }
    }

    /// Lines of text: what the kernel's functions say.
    pub fn facts(&self) -> Vec<String> {
        let (mut child, output) = self.run(&["facts"]);
        let lines = output.lines().collect::<Result<_, _>>();
        finish(&mut child);
        lines.expect("vectors prints text")
    }

    /// Hands `count` vectors of each field to `check`, with the kernel's name of the field; returns
    /// the number of fields.
    pub fn fields(&self, count: u32, mut check: impl FnMut(&str, &Vector)) -> usize {
        let (mut child, mut output) = self.run(&["fields", &count.to_string()]);
        let mut number_of_fields = 0;
        let mut name = Vec::new();
        while output
            .read_until(0, &mut name)
            .expect("vectors can be read")
            != 0
        {
            name.pop();
            let field = String::from_utf8(name).expect("names are ASCII");
            let value_size = u16::from_be_bytes(read(&mut output)).into();
            let mut vector = Vector {
                before: [0; 256],
                value: vec![0; value_size],
                read: vec![0; value_size],
                after: [0; 256],
            };
            for _ in 0..u32::from_be_bytes(read(&mut output)) {
                vector.before = read(&mut output);
                output
                    .read_exact(&mut vector.value)
                    .expect("a vector is complete");
                output
                    .read_exact(&mut vector.read)
                    .expect("a vector is complete");
                vector.after = read(&mut output);
                check(&field, &vector);
            }
            number_of_fields += 1;
            name = Vec::new();
        }
        finish(&mut child);
        number_of_fields
    }

    fn run(&self, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
        let mut child = Command::new(&self.program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("vectors can be run");
        let output = child.stdout.take().expect("the output is a pipe");
        (child, BufReader::with_capacity(1 << 16, output))
    }
}

/// One setting of a field by the kernel's macros.
pub struct Vector {
    /// The MAD before.
    pub before: [u8; 256],
    /// The value that the field was set to; 8 bytes, big endian, for a number.
    pub value: Vec<u8>,
    /// The value that was read back.
    pub read: Vec<u8>,
    /// The MAD after.
    pub after: [u8; 256],
}

/// The kernel's source tree.
fn kernel_source() -> PathBuf {
    let Some(path) = env::var_os("IB_CM_KERNEL_SOURCE") else {
        panic!(
            "set IB_CM_KERNEL_SOURCE to the source tree of the kernel: \
             the messages are compared with its own definition of them"
        );
    };
    let path = PathBuf::from(path);
    let header = path.join("include/rdma/ibta_vol1_c12.h");
    assert!(
        header.exists(),
        "IB_CM_KERNEL_SOURCE has no {}",
        header.display()
    );
    path
}

fn read_source(kernel: &Path, file: &str) -> String {
    let path = kernel.join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of the definitions, which end with a line that begins with a closing brace, or for
/// macros with the line.
fn definitions(kernel: &Path, wanted: &[(&str, &[&str])]) -> String {
    let mut text = String::new();
    for (file, beginnings) in wanted {
        let source = format!("\n{}", read_source(kernel, file));
        for beginning in *beginnings {
            let Some(start) = source.find(&format!("\n{beginning}")) else {
                panic!("{file} has no `{beginning}`");
            };
            let rest = &source[start + 1..];
            let end = if rest.starts_with('#') {
                rest.find('\n')
            } else {
                rest.find("\n}").and_then(|brace| {
                    let last = brace + 1;
                    rest[last..].find('\n').map(|length| last + length)
                })
            };
            let end = end.unwrap_or_else(|| panic!("{file}: `{beginning}` has no end"));
            text.push_str(&rest[..end]);
            text.push('\n');
        }
    }
    text
}

/// A line of C for each field that the kernel defines.
fn fields(kernel: &Path) -> String {
    let header = read_source(kernel, "include/rdma/ibta_vol1_c12.h").replace("\\\n", " ");
    let mut text = String::new();
    for line in header.lines() {
        let definition = line.strip_prefix("#define CM_").unwrap_or_default();
        let Some((name, place)) = definition.split_once(char::is_whitespace) else {
            continue;
        };
        let Some((kind, place)) = place.trim().split_once('(') else {
            continue;
        };
        if name.contains('(') || !kind.starts_with("CM_FIELD") {
            continue;
        }
        let place: Vec<_> = place.split(',').map(str::trim).collect();
        if kind == "CM_FIELD_MLOC" {
            let bits: usize = place[2].parse().expect("the width is a number");
            text.push_str(&format!("BYTES({name}, {}, {})\n", place[0], bits / 8));
        } else {
            text.push_str(&format!("NUMBER({name}, {})\n", place[0]));
        }
    }
    text
}

fn read<const N: usize>(output: &mut impl Read) -> [u8; N] {
    let mut bytes = [0; N];
    output
        .read_exact(&mut bytes)
        .expect("vectors prints whole records");
    bytes
}

fn finish(child: &mut Child) {
    let status = child.wait().expect("vectors ends");
    assert!(status.success(), "vectors failed: {status}");
}
