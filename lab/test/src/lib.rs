//! The attribute `#[lab::test]`, which registers a function with the test runner of the lab.
//!
//! The function takes nothing and returns `anyhow::Result<()>`. Each argument of the attribute is a
//! method of `lab::runner::Test`: `#[lab::test(alone)]`, `#[lab::test(limit(600))]`.

use proc_macro::{TokenStream, TokenTree};

/// Registers a test with the runner, under its module path and name.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let Some(name) = name(function.clone()) else {
        return "compile_error!(\"`#[lab::test]` goes before a function\");"
            .parse()
            .unwrap_or_default();
    };
    let registration = format!(
        "::lab::runner::inventory::submit! {{ \
             ::lab::runner::Test::new(concat!(module_path!(), \"::{name}\"), {name}) {} \
         }}",
        methods(arguments)
    );
    let registration = registration.parse::<TokenStream>();
    let registration = registration.expect("names and methods are Rust");
    function.into_iter().chain(registration).collect()
}

/// The identifier after `fn`.
fn name(function: TokenStream) -> Option<String> {
    let mut tokens = function.into_iter();
    tokens.find(|token| token.to_string() == "fn")?;
    tokens.next().map(|name| name.to_string())
}

/// `alone, limit(600)` as `.alone().limit(600)`.
fn methods(arguments: TokenStream) -> String {
    let mut tokens = arguments.into_iter().peekable();
    let mut methods = String::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(method) => {
                let called = tokens.next_if(|next| matches!(next, TokenTree::Group(_)));
                let arguments = called.map_or("()".to_owned(), |group| group.to_string());
                methods += &format!(".{method}{arguments}");
            }
            TokenTree::Group(_) | TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
    methods
}
