from ledger.places import opened, place, postgres  # noqa: F401
