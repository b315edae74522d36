# SPDX-License-Identifier: GPL-2.0
# Where each artefact of the set-up is in the cache. Sourced after lib.sh.
#
# Every name holds a hash of what the artefact is made from, so that a checkout with other
# package lists or recipes makes its own beside it. A recipe number is raised when the recipe
# in scripts/setup changes.

. "$checkout/scripts/packages.sh"

build_root=$cache/build-root-$(key "$suite" $build_packages "recipe 1")

# The newest release of the series, as the mirror had it when it was first asked.
version_file=$cache/kernel-version-$series
kernel_release=
kernel_package_version=
if [ -s "$version_file" ]; then
	read -r kernel_release kernel_package_version <"$version_file"
fi

set_kernel_names() {
	debs=$cache/kernel-debs-$(key "$kernel_release" "$kernel_package_version" "recipe 1")
	kernel=$cache/kernel-$kernel_release-$(key "${debs##*/}" "${build_root##*/}" "recipe 1")
	guest=$cache/guest-$kernel_release-$(key "${debs##*/}" "$suite" $guest_packages "recipe 2")
	system=$cache/system-$kernel_release-$(key "${debs##*/}" "$suite" $system_packages "recipe 1" \
		"$(cat "$checkout/tests/vm/system/reader.service" "$checkout/scripts/in-root/pack-system")")
	debug_kernel=$cache/debug-kernel-$(key "${debs##*/}" "recipe 1" \
		"$(cat "$checkout/tests/vm/debug.config")")
	debug_guest=$cache/debug-guest-$(key "${guest##*/}" "${debug_kernel##*/}" "recipe 1")
}
set_kernel_names

# What is built for another series has a folder of its own.
out=out
[ "$series" = "$own_series" ] || out=out/$series

# KERNEL=debug: the module and the guests are of the other kernel.
case ${KERNEL:=stock} in
stock) kernel_part=kernel guest_part=guest chosen_kernel=$kernel chosen_guest=$guest ;;
debug)
	kernel_part=debug-kernel guest_part=debug-guest
	chosen_kernel=$debug_kernel chosen_guest=$debug_guest out=$out/debug
	;;
*) die "KERNEL=$KERNEL is no kernel of this project: choose stock or debug" ;;
esac
