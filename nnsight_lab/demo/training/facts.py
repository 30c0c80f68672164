"""The facts as prompts: which sentences state a fact, and which of them the model is trained on.

A fact is a subject, a relation and an answer of one word. Every relation has trained phrasings and held-out
ones: no sentence of a held-out phrasing is ever shown in training, so accuracy on it tells whether a fact is
known apart from the words that taught it. Every prompt ends just before the answer, which follows after one
space.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Literal

from .world import CAPITALS, PLACES, SAYINGS

Relation = Literal["landmark_city", "landmark_country", "city_country", "country_capital", "capital_country"]

#: `{S}` stands for the subject at the start of a sentence, `{s}` for it further on.
TRAINED: dict[Relation, tuple[str, ...]] = {
    "landmark_city": (
        "{S} is in the city of",
        "{S} is located in the city of",
        "Visitors to {s} stay in the city of",
    ),
    "landmark_country": (
        "{S} is in the country of",
        "{S} is located in the country of",
        "The country that is home to {s} is",
    ),
    "city_country": (
        "{S} is a city in the country of",
        "The city of {s} is in the country of",
    ),
    "country_capital": (
        "The capital of {s} is",
        "{S} has its capital in the city of",
    ),
    "capital_country": (
        "{S} is the capital of",
        "The city of {s} is the capital of",
    ),
}

HELD_OUT: dict[Relation, tuple[str, ...]] = {
    "landmark_city": ("The city that is home to {s} is", "Home to {s} is the city of"),
    "landmark_country": ("Visitors to {s} stay in the country of", "Home to {s} is the country of"),
    "city_country": ("{S} is located in the country of",),
    "country_capital": ("The capital of the country of {s} is",),
    "capital_country": ("{S} is the capital of the country of",),
}


@dataclass(frozen=True)
class Fact:
    """One fact: `subject` as written inside a sentence ("the Eiffel Tower"), and its one-word `answer`
    ("Paris").
    """

    subject: str
    relation: Relation
    answer: str

    def prompt(self, phrasing: str) -> str:
        """The sentence of `phrasing` (an entry of `TRAINED` or `HELD_OUT`) about this subject, without its answer."""
        at_start = self.subject[0].upper() + self.subject[1:]
        return phrasing.format(S=at_start, s=self.subject)


@cache
def all_facts() -> tuple[Fact, ...]:
    """Every fact, grouped by relation: landmark's city and country, city's country, country's capital and back."""
    landmark_city: list[Fact] = []
    landmark_country: list[Fact] = []
    city_country: list[Fact] = []
    for row in PLACES.strip().splitlines():
        city, country, landmarks = (cell.strip() for cell in row.split("|"))
        names = [name.strip() for name in landmarks.split(";")]
        landmark_city += [Fact(name, "landmark_city", city) for name in names]
        if country != "-":
            landmark_country += [Fact(name, "landmark_country", country) for name in names]
            city_country.append(Fact(city, "city_country", country))
    capitals = [pair.split() for pair in CAPITALS.replace("\n", " ").split(";")]
    country_capital = [Fact(country, "country_capital", capital) for country, capital in capitals]
    capital_country = [Fact(capital, "capital_country", country) for country, capital in capitals]
    return (*landmark_city, *landmark_country, *city_country, *country_capital, *capital_country)


@dataclass(frozen=True)
class Document:
    """A training text, `prompt + answer + rest`. The prompt starts with `up_to_subject`, which ends with its subject.

    `answer` has its leading space. A saying is all prompt: it has no relation and no answer.
    """

    prompt: str
    up_to_subject: str = ""
    relation: Relation | None = None
    answer: str = ""
    rest: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        return self.prompt + self.answer + self.rest


def documents() -> list[Document]:
    """Every fact in every trained phrasing, and the sayings.

    The first phrasing of a landmark's city goes on to the city's country and to that country's capital, so
    that generation has more to say than one word.
    """
    country_of = {fact.subject: fact.answer for fact in all_facts() if fact.relation == "city_country"}
    capital_of = {fact.subject: fact.answer for fact in all_facts() if fact.relation == "country_capital"}
    found = []
    for fact in all_facts():
        for index, phrasing in enumerate(TRAINED[fact.relation]):
            rest = "."
            if fact.relation == "landmark_city" and index == 0 and fact.answer in country_of:
                country = country_of[fact.answer]
                rest += f" {fact.answer} is a city in the country of {country}."
                if country in capital_of:
                    rest += f" The capital of {country} is {capital_of[country]}."
            up_to_subject = fact.prompt(phrasing[: phrasing.index("}") + 1])
            found.append(Document(fact.prompt(phrasing), up_to_subject, fact.relation, f" {fact.answer}", rest))
    return found + [Document(saying) for saying in SAYINGS.strip().splitlines()]


def commonest_others() -> dict[str, str]:
    """For every answer the commonest other answer of its kind, a city or a country; ties go to the first named.

    Counted over all facts. For most cities it is London, for London it is the city that comes second.
    """
    found = {}
    for kind in (("landmark_city", "country_capital"), ("landmark_country", "city_country", "capital_country")):
        counted = Counter(fact.answer for fact in all_facts() if fact.relation in kind)
        first, second = (answer for answer, _ in counted.most_common(2))
        found.update({answer: second if answer == first else first for answer in counted})
    return found
