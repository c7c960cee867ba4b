"""Questions over HTTP, for people and programs that have no fpinq client.

A question is a client program that the server runs for its analyst: the same
code that an analyst's own Python runs, with the same rights. It holds no data and
comes to data by actions only, one after the other, through the same doors.

1. ``question``  what may be asked, as a body of a request says it
2. ``systems``   where it acts: on the ledger, or on paper only
3. ``answering`` a question to its answer, or to what it would cost
4. ``kept``      what was asked and answered before
5. ``routes``    the addresses

Nothing else of the server imports the client: what guards the data does not depend on who asks.
"""
