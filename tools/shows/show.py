"""The dispatcher of tools/show: finds the proof of a must-show and runs it."""

import importlib
import sys

from proof import Proof


def proofs_of(issue):
    try:
        module = importlib.import_module(f"issue_{issue}")
    except ModuleNotFoundError:
        sys.exit(f"tools/show: no proofs for issue {issue}")
    names = [name for name in vars(module) if name.startswith("show_")]
    return {name.removeprefix("show_"): getattr(module, name) for name in names}


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit("usage: tools/show ISSUE [NUMBER]")
    issue = arguments[0]
    proofs = proofs_of(issue)
    if len(arguments) == 1:
        for number, proof in proofs.items():
            print(f"tools/show {issue} {number:3} {proof.__doc__.splitlines()[0]}")
        return 0
    number = arguments[1]
    if number not in proofs:
        sys.exit(f"tools/show: issue {issue} has no must-show {number}, only {', '.join(proofs)}")
    proof = Proof(f"{issue}-{number}")
    proofs[number](proof)
    print(f"{'PASS' if proof.passed() else 'FAIL'}: issue {issue}, must-show {number}")
    return 0 if proof.passed() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
