"""Writes accepted/pydantic-*.json with pydantic 2.14:

    pip install 'pydantic[email]==2.14.3' && python make_pydantic.py accepted
"""

import datetime
import decimal
import enum
import json
import pathlib
import sys
import uuid
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

from pydantic import (
    AnyUrl, BaseModel, ConfigDict, EmailStr, Field, IPvAnyAddress, RootModel, SecretStr, StringConstraints, TypeAdapter,
)
from typing_extensions import Required, TypeAliasType, TypedDict


class Color(str, enum.Enum):
    red = "red"
    green = "green"


class Level(enum.IntEnum):
    low = 1
    high = 2


class Address(BaseModel):
    """Where someone lives."""

    model_config = ConfigDict(extra="forbid")
    street: str = Field(min_length=1, max_length=80, examples=["Main St 1"])
    zip: Annotated[str, StringConstraints(pattern=r"^\d{5}$")]
    country: Literal["DE", "FR"] = "DE"


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid", title="Somebody")
    name: str = Field(description="Full name")
    age: int = Field(ge=0, lt=150)
    email: Optional[EmailStr] = None
    homepage: Optional[AnyUrl] = None
    born: datetime.date | None = None
    seen: datetime.datetime
    id: uuid.UUID
    home: Address
    office: Optional[Address] = Field(default=None, deprecated=True, description="Where they work")
    color: Color = Color.red
    level: Level
    tags: set[str] = Field(default_factory=set, max_length=5)
    point: tuple[float, float]
    scores: dict[str, float] = {}
    password: SecretStr | None = None


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Branch(BaseModel):
    left: Union["Branch", "Leaf"]
    right: Union["Branch", "Leaf"]


class Leaf(BaseModel):
    n: float


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=0, le=9)


class Dog(BaseModel):
    kind: Literal["dog", "wolf"]
    barks: bool


class Zoo(BaseModel):
    pets: list[Annotated[Union[Cat, Dog], Field(discriminator="kind")]] = Field(min_length=1)


class Money(BaseModel):
    amount: decimal.Decimal
    currency: Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")]
    due: datetime.timedelta | None = None
    at: datetime.time
    ip: IPvAnyAddress
    raw: bytes = b""
    parts: dict[Color, int] = {}
    keyed: dict[Annotated[str, StringConstraints(pattern="^k_")], Address] = {}
    anything: Any = None
    frozen: frozenset[int] = frozenset()
    first: tuple[int, ...] = ()
    steps: int = Field(0, multiple_of=5)


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: str | None


class Names(RootModel[list[str]]):
    pass


class Partial(TypedDict, total=False):
    a: Required[int]
    b: str


Json = TypeAliasType("Json", "Union[dict[str, Json], list[Json], str, int, float, bool, None]")

Branch.model_rebuild()
out = pathlib.Path(sys.argv[1])
for name, model in {
    "person": Person, "tree": Node, "mutual": Branch, "zoo": Zoo, "money": Money, "page": Page[Person],
    "root-list": Names, "root-union": Union[Cat, Dog], "json-value": Json, "typeddict": Partial,
}.items():
    text = json.dumps(TypeAdapter(model).json_schema(), indent=1, ensure_ascii=False)
    (out / f"pydantic-{name}.json").write_text(text + "\n")
text = json.dumps(Money.model_json_schema(mode="serialization"), indent=1, ensure_ascii=False)
(out / "pydantic-money-serialization.json").write_text(text + "\n")
