"""What every framework is given: a server, a key, two local functions and a task that needs both of
them and one of Parley's tools in the same turn."""

import os

from pydantic import BaseModel

BASE = os.environ["PARLEY_URL"] + "/openai/v1"
KEY = os.environ["PARLEY_API_KEY"]
MODEL = os.environ.get("PARLEY_MODEL", "w")
TASK = '@call wiki_read {"page":"onboarding"} get_weather {"city":"Rome"} get_time {"city":"Rome"}\n@say It is sunny at noon.'
ANSWER = "It is sunny at noon."
ran: list[str] = []


class City(BaseModel):
    city: str


def get_weather(city: str) -> str:
    """The weather of a city."""
    ran.append("weather " + city)
    return "22 C"


def get_time(city: str) -> str:
    """The time of a city."""
    ran.append("time " + city)
    return "noon"


def check(name: str, answer: str) -> None:
    assert answer == ANSWER, f"{name}: {answer!r}"
    assert sorted(ran) == ["time Rome", "weather Rome"], f"{name}: {ran}"
    ran.clear()
