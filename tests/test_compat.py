"""nnsight-lab in the place of nnsight, in processes of their own: what is installed concerns every object."""

import subprocess
import sys
import textwrap

import pytest


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_code_for_nnsight_runs_unmodified() -> None:
    out = run(
        """
        import nnsight_lab.compat
        nnsight_lab.compat.install()

        import torch
        import nnsight
        from nnsight import LanguageModel, NNsight
        from nnsight.modeling.language import LanguageModel as Same
        from nnsight.intervention.envoy import Envoy

        class Toy(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(2, 2)
            def forward(self, x):
                return self.layer(x) * 2

        toy = Toy()
        model = NNsight(toy)
        x = torch.ones(1, 2)
        with model.trace(x):
            hidden = model.layer.output.save()
            pair = {"hidden": hidden, "own": object().save()}.save()
            count = nnsight.save(3)
        print(torch.equal(hidden, toy.layer(x)), sorted(pair), count, Same is LanguageModel, isinstance(model, Envoy))
        print(NNsight is nnsight_lab.NNsight, LanguageModel is nnsight_lab.LanguageModel)
        """
    )
    assert out == "True ['hidden', 'own'] 3 True True\nTrue True\n"


def test_save_of_any_object_exists_only_inside_a_trace() -> None:
    out = run(
        """
        import torch
        import nnsight_lab, nnsight_lab.compat

        class Own:
            pass

        own, model = Own(), nnsight_lab.NNsight(torch.nn.Linear(2, 2))
        states = [hasattr(own, "save")]
        nnsight_lab.compat.install()
        states.append(hasattr(own, "save"))
        with model.trace(torch.ones(1, 2)):
            states.append(own.save() is own)
        states.append(hasattr(own, "save"))
        nnsight_lab.compat.uninstall()
        with model.trace(torch.ones(1, 2)):
            states.append(hasattr(own, "save"))
        import sys
        print(states, "nnsight" in sys.modules)
        """
    )
    assert out == "[False, False, True, False, False] False\n"


def test_a_class_with_a_save_of_its_own_keeps_it() -> None:
    out = run(
        """
        import torch
        import nnsight_lab, nnsight_lab.compat
        nnsight_lab.compat.install()

        class Own:
            def save(self):
                return "own"

        model = nnsight_lab.NNsight(torch.nn.Linear(2, 2))
        with model.trace(torch.ones(1, 2)):
            print(Own().save())
        """
    )
    assert out == "own\n"


def test_a_name_that_is_not_there_points_to_the_list() -> None:
    out = run(
        """
        import nnsight_lab.compat
        nnsight_lab.compat.install(save_on_any_object=False)
        import nnsight
        try:
            nnsight.DiffusionModel
        except AttributeError as error:
            print(error)
        print(hasattr(object(), "save"))
        """
    )
    assert out == (
        "nnsight.DiffusionModel is not in nnsight-lab; docs/migrating-from-nnsight.md says what is.\nFalse\n"
    )


def test_nnsight_itself_is_not_pushed_aside() -> None:
    out = run(
        """
        import sys, types
        sys.modules["nnsight"] = types.ModuleType("nnsight")
        import nnsight_lab.compat
        try:
            nnsight_lab.compat.install()
        except nnsight_lab.compat.CompatError as error:
            print("before the first `import nnsight`" in str(error))
        """
    )
    assert out == "True\n"


@pytest.mark.parametrize("name", ["nnsight", "nnsight.modeling.language"])
def test_installing_twice_keeps_the_module(name: str) -> None:
    out = run(
        f"""
        import sys, nnsight_lab.compat
        nnsight_lab.compat.install()
        first = sys.modules["{name}"]
        nnsight_lab.compat.install()
        print(first is sys.modules["{name}"])
        """
    )
    assert out == "True\n"
