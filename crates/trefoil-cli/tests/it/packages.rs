//! The packages: image, unit, and what Compose and Kubernetes are given.

use crate::python;

#[test]
fn the_packages_are_sound() {
    if python::has("check_jsonschema, dockerfile_parse, kubernetes_validate") {
        python::run(python::script("packages.py").arg(env!("CARGO_BIN_EXE_trefoil")));
    }
}
