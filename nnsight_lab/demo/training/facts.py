"""The facts as prompts: which sentences state a fact, and which of them the model is trained on.

A fact is a subject, a relation and an answer of one word. Every relation has trained phrasings and held-out
ones: no sentence of a held-out phrasing is ever shown in training, so accuracy on it tells whether a fact is
known apart from the words that taught it. Every prompt ends just before the answer, which follows after one
space.
"""

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
        """The sentence of `phrasing` (an entry of `TRAINED` or `HELD_OUT`) about this subject, without its
        answer.
        """
        at_start = self.subject[0].upper() + self.subject[1:]
        return phrasing.format(S=at_start, s=self.subject)


@cache
def all_facts() -> tuple[Fact, ...]:
    """Every fact, grouped by relation: landmark's city and country, city's country, country's capital and
    back.
    """
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


def documents() -> list[tuple[str, str, str]]:
    """Training texts as `(prompt, answer, rest)`, to be joined as they are; sayings have an empty answer and
    rest.

    The first phrasing of a landmark's city goes on to the city's country and to that country's capital, so
    that generation has more to say than one word.
    """
    country_of = {fact.subject: fact.answer for fact in all_facts() if fact.relation == "city_country"}
    capital_of = {fact.subject: fact.answer for fact in all_facts() if fact.relation == "country_capital"}
    texts = []
    for fact in all_facts():
        for index, phrasing in enumerate(TRAINED[fact.relation]):
            rest = "."
            if fact.relation == "landmark_city" and index == 0 and fact.answer in country_of:
                country = country_of[fact.answer]
                rest += f" {fact.answer} is a city in the country of {country}."
                if country in capital_of:
                    rest += f" The capital of {country} is {capital_of[country]}."
            texts.append((fact.prompt(phrasing), f" {fact.answer}", rest))
    return texts + [(saying, "", "") for saying in SAYINGS.strip().splitlines()]
