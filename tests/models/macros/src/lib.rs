// SPDX-License-Identifier: GPL-2.0
//! `#[pin_data]`, `#[pinned_drop]` and `#[kunit_tests]`, as far as the models need them: nothing is pinned, but
//! fields are reached by `project()` all the same.

use proc_macro::Delimiter;
use proc_macro::TokenStream;
use proc_macro::TokenTree;

/// A field: its attributes and visibility are left out.
struct Field {
    name: String,
    kind: String,
}

/// Takes `#[pin]` out.
fn without_pin(body: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_pin = matches!(&tokens[at], TokenTree::Punct(punct) if punct.as_char() == '#')
            && tokens
                .get(at + 1)
                .is_some_and(|next| next.to_string() == "[pin]");
        if is_pin {
            at += 2;
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The fields of a struct's body.
fn fields(body: &[TokenTree]) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut depth = 0;
    let mut part: Vec<TokenTree> = Vec::new();
    let mut end = |part: &mut Vec<TokenTree>| {
        let colon = part
            .iter()
            .position(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':'));
        if let Some(colon) = colon {
            let kind: TokenStream = part[colon + 1..].iter().cloned().collect();
            fields.push(Field {
                name: part[colon - 1].to_string(),
                kind: kind.to_string(),
            });
        }
        part.clear();
    };
    for token in body {
        if let TokenTree::Punct(punct) = token {
            match punct.as_char() {
                '<' => depth += 1,
                '>' => depth -= 1,
                ',' if depth == 0 => {
                    end(&mut part);
                    continue;
                }
                _ => {}
            }
        }
        part.push(token.clone());
    }
    end(&mut part);
    fields
}

/// `#[pin_data]`.
#[proc_macro_attribute]
pub fn pin_data(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut out = Vec::new();
    let mut name = String::new();
    let mut generic = false;
    let mut known = Vec::new();
    let mut previous = String::new();
    for token in item {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let body = without_pin(group.stream());
                known = fields(&body);
                let stream: TokenStream = body.into_iter().collect();
                out.push(TokenTree::Group(proc_macro::Group::new(
                    Delimiter::Brace,
                    stream,
                )));
            }
            token => {
                if previous == "struct" {
                    name = token.to_string();
                }
                generic |= !name.is_empty() && token.to_string() == "<";
                previous = token.to_string();
                out.push(token);
            }
        }
    }
    let mut text = String::new();
    if !generic {
        let (mut declared, mut filled) = (String::new(), String::new());
        for Field { name, kind } in &known {
            declared += &format!("pub(crate) {name}: &'a mut {kind},");
            filled += &format!("{name}: &mut this.{name},");
        }
        text = format!(
            "pub(crate) struct {name}Projection<'a> {{ {declared} }}
             impl {name} {{
                 pub(crate) fn project(self: core::pin::Pin<&mut Self>) -> {name}Projection<'_> {{
                     // SAFETY: Nothing is pinned here.
                     let this = unsafe {{ self.get_unchecked_mut() }};
                     {name}Projection {{ {filled} }}
                 }}
             }}"
        );
        if args.to_string() == "PinnedDrop" {
            text.push_str(&format!(
                "impl Drop for {name} {{
                     fn drop(&mut self) {{
                         // SAFETY: It is not used any more.
                         let this = unsafe {{ core::pin::Pin::new_unchecked(self) }};
                         kernel::prelude::PinnedDrop::drop(this);
                     }}
                 }}"
            ));
        }
    }
    let mut item: TokenStream = out.into_iter().collect();
    let extra: TokenStream = text.parse().unwrap_or_default();
    item.extend(extra);
    item
}

/// `#[pinned_drop]`.
#[proc_macro_attribute]
pub fn pinned_drop(_args: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// `#[kunit_tests(suite)]`: those run in the kernel.
#[proc_macro_attribute]
pub fn kunit_tests(_args: TokenStream, _item: TokenStream) -> TokenStream {
    TokenStream::new()
}
