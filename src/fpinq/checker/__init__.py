"""The theorem, checked: the kernel's own rules over tiny tables, exhaustively, with exact probabilities.

1. ``mechanisms``    exact answers' probabilities: the base-2 mechanism, discrete Laplace
2. ``worlds``        which databases and neighbours
   ``scope``         which actions
3. ``programs``      every program of the scope against the theorem
   ``interleavings`` every interleaving of a few sessions that share budgets, against it and one program
4. ``propositions``  the paper's propositions on explicit traces, adaptive clients included
5. ``wrong``         wrong rules
   ``mutants``       where each is put; the check must refute them
6. ``instances``     every transformation, with parameters of every kind
   ``stabilities``   their tight stabilities, by search
7. ``notation``      programs and counterexamples as the paper writes them
"""
