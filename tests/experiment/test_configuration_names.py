"""What configurations are called in tables and charts."""

from aimbot_lab.experiment.analysis.configurations import NamedRun, configuration_names


def runs(name: str, curriculum: str = "goto") -> list[NamedRun]:
    return [NamedRun(f"{name} seed {seed}", seed, curriculum) for seed in (1, 2)]


def test_a_configuration_has_the_name_that_its_runs_were_given() -> None:
    groups = {"aaaaaaaa": runs("usual"), "bbbbbbbb": [NamedRun("slower", 1, "goto")]}
    assert configuration_names(groups) == {"aaaaaaaa": "usual", "bbbbbbbb": "slower"}


def test_runs_that_were_named_differently_have_the_name_of_their_curriculum() -> None:
    assert configuration_names({"a": [*runs("one"), *runs("other")]}) == {"a": "goto"}


def test_names_that_several_have_are_followed_by_the_beginning_of_their_tags() -> None:
    found = configuration_names(
        {"12345678": runs("goto"), "abcdefgh": runs("goto"), "c": runs("x")}
    )
    assert found == {"12345678": "goto (123456)", "abcdefgh": "goto (abcdef)", "c": "x"}
