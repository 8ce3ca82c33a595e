"""The classes of this package have the names, fields and cases of the contract.

Needs the generated bindings of the contract: the folder that `VEEKSHA_BINDINGS` names, made by
`componentize-py -d wit/0.2.0 -w everything bindings FOLDER`.
"""

import dataclasses
import importlib
import os
import sys
import unittest
from enum import Enum

BINDINGS = os.environ.get("VEEKSHA_BINDINGS")


@unittest.skipUnless(BINDINGS, "VEEKSHA_BINDINGS is not set")
class Contract(unittest.TestCase):
    def setUp(self) -> None:
        sys.path.insert(0, BINDINGS or "")

    def test_each_class_has_the_fields_or_cases_of_the_contract(self) -> None:
        from veeksha._contract import CLASSES

        for module, classes in CLASSES.items():
            generated = importlib.import_module(module)
            for name, ours in classes.items():
                theirs = getattr(generated, name)
                with self.subTest(module=module, name=name):
                    if issubclass(theirs, Enum):
                        self.assertEqual(
                            [(case.name, case.value) for case in ours],
                            [(case.name, case.value) for case in theirs],
                        )
                    elif name != "Error":
                        self.assertEqual(
                            [field.name for field in dataclasses.fields(ours)],
                            [field.name for field in dataclasses.fields(theirs)],
                        )

    def test_every_type_of_the_contract_has_a_class(self) -> None:
        from veeksha._contract import CLASSES

        # These are read, never made: their generated classes remain.
        read = {"Batch", "FurtherColumn", "Row", "Group", "Facts", "Descriptor"}
        for module, classes in CLASSES.items():
            generated = importlib.import_module(module)
            made = {
                name
                for name, member in vars(generated).items()
                if isinstance(member, type)
                and member.__module__ == module
                and (dataclasses.is_dataclass(member) or issubclass(member, Enum))
            }
            self.assertEqual(made - set(classes) - read, set(), module)


if __name__ == "__main__":
    unittest.main()
