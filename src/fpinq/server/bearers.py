"""Whom a request comes from, as an address may ask for it."""

from typing import Annotated

from fastapi import Depends, Request

from fpinq.server.house import House
from fpinq.server.tokens import Bearer


# Not in a thread: whoever is not let in has none.
async def _bearer(request: Request) -> Bearer:
    house: House = request.app.state.house
    return house.admit(request.scope)


async def _analyst(request: Request) -> Bearer:
    house: House = request.app.state.house
    return house.admit(request.scope, "analyst")


async def _auditor(request: Request) -> Bearer:
    house: House = request.app.state.house
    return house.admit(request.scope, "auditor", "owner")


async def _owner(request: Request) -> Bearer:
    house: House = request.app.state.house
    return house.admit(request.scope, "owner")


AnyBearer = Annotated[Bearer, Depends(_bearer)]
Analyst = Annotated[Bearer, Depends(_analyst)]
Auditor = Annotated[Bearer, Depends(_auditor)]
Owner = Annotated[Bearer, Depends(_owner)]
