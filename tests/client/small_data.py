"""Six people and their visits, and an ε at which nothing is left to chance."""

# At this ε an answer is the exact statistic but with a probability of less than e^−100.
SURE = 10**9
PLENTY = 10**16

PEOPLE = [
    {"id": 1, "age": 10, "gender": 0, "city": "Ulm", "income": 0.0},
    {"id": 2, "age": 20, "gender": 1, "city": "Ulm", "income": 1500.5},
    {"id": 3, "age": 30, "gender": 0, "city": "Bonn", "income": 2500.25},
    {"id": 4, "age": 40, "gender": 1, "city": "Bonn", "income": None},
    {"id": 5, "age": 50, "gender": 0, "city": "Kiel", "income": 4000.0},
    {"id": 6, "age": 60, "gender": 1, "city": None, "income": 800.0},
]

VISITS = [
    {"id": 1, "cost": 5, "day": 1},
    {"id": 1, "cost": 7, "day": 2},
    {"id": 2, "cost": 11, "day": 1},
    {"id": 2, "cost": 13, "day": 1},
    {"id": 2, "cost": 17, "day": 3},
    {"id": 4, "cost": 19, "day": 2},
    {"id": None, "cost": 23, "day": 2},
]
