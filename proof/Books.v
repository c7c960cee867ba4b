(** * Books

    [model/books.py] in Coq: roots of every notion under the one charge.  A book is
    a set of accounts as in [Sources].  The pure roots share one, in ε; each
    concentrated root has one of its own, in ρ; and a root with a δ for keys that
    nobody knew has one more, in δ.  A query of a table t is charged
    in every book, at a rate of that book's own: κ per unit of distance, where
    κ may depend on the scale of t there, that is, on how many records of t one
    record of the book's roots can change; in a book in δ, what the query
    spends of it, for each unit of distance.  Of what is in a book only its own
    roots are held against budgets; a query is answered if all of them are within
    theirs, in every book.

    The rates may be anything that keeps the promise of [Rates].  For each book in
    ε or ρ, over two databases that differ in its roots alone, the traces of every
    adaptive program are then as close, in the book's notion, as what its roots
    have paid: [books_alike], after the event; [books_within], by the budgets; of a
    root with a δ, but for that δ: [books_nearly].  One
    proof for both notions, and for any κ: a step raises Ψ by κ * v·d, which is
    never less than its loss.  With a δ, every law is replaced by its core, the
    part of it that is close: [core_probability]. *)

Require Import Reals Lra Lia List Arith Bool.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.Scale Fpinq.Closeness Fpinq.Approximate Fpinq.General.
Import ListNotations.
Open Scope R_scope.

(** ** What a query costs *)

(** κ of a mechanism at e in a book of a notion, on a scale; [None] if it may not
    be asked there.  A concentrated book speaks of one record, so that no table
    differs by more than its scale.

    [spends] is the δ for each unit of distance.  Beside another table, a law has
    a core: all of it but δ * distance, and the cores are what is close.  Where
    no δ is spent the core is the law. *)
Record Rates (S : Tables) := {
  kappa : notion -> mechanism S -> R -> R -> option R;
  spends : mechanism S -> R;
  core : mechanism S -> R -> table S -> table S -> answer S -> R;
  kappa_nonneg : forall n q e s k, 0 < e -> 0 <= s -> kappa n q e s = Some k -> 0 <= k;
  spends_nonneg : forall q, 0 <= spends q;
  core_distribution : forall q e T U, 0 < e -> distribution (core q e T U);
  core_same : forall q e T U v, distance S T U = 0%nat ->
    core q e T U v = mass S q e T v /\ core q e U T v = mass S q e U v;
  core_below : forall n q e s k T U v, 0 < e -> kappa n q e s = Some k ->
    (spends q = 0 \/ INR (distance S T U) <= s) ->
    (1 - spends q * INR (distance S T U)) * core q e T U v <= mass S q e T v /\
    (1 - spends q * INR (distance S T U)) * core q e U T v <= mass S q e U v;
  kappa_covers : forall n q e s k T U, 0 < e -> kappa n q e s = Some k ->
    (n = Concentrated -> INR (distance S T U) <= s) ->
    alike n (fun _ => k * INR (distance S T U)) (core q e T U) (core q e U T) /\
    alike n (fun _ => k * INR (distance S T U)) (core q e U T) (core q e T U) }.

(** What a book is in: ε or ρ, or δ. *)
Inductive purpose := Loss (n : notion) | Keys.

Section Books.
  Variable S : Tables.
  Variable rates : Rates S.
  Variable roots : nat.
  (** What a root may pay in a book. *)
  Variable budget : nat -> vector.
  (** The book that a root is in, its book in δ if it has one, and what a book is in. *)
  Variables (book_of : nat -> nat) (keys_of : nat -> option nat) (kind : nat -> purpose).

  Notation table := (table S).
  Notation distance := (distance S).

  (** ** The rules *)

  Inductive Action :=
    | Silent
    | Assign (t : nat) (F : transformation S) (ts : list nat)
    | Partition_ (t : nat) (f : splitter S) (k : nat) (dest : nat)
    | Query (t : nat) (f : splitter S) (Qs : list (mechanism S)) (e : R)
    | AskScale (t : nat)
    | AskBudget
    | AskPrice (t : nat) (Qs : list (mechanism S)) (e : R).

  Notation Observation := (Observation S).
  Record Client := { program : Type; does : program -> Action; told : program -> Observation -> program }.

  Record State := { environment : Environment S; book : nat -> Accounts }.
  Notation Transition := (Reply S * State)%type.

  (** The state as one book sees it. *)
  Definition view (s : State) (b : nat) : General.State S :=
    {| General.environment := environment s; accounts := book s b |}.
  Definition sensitivity_of (s : State) (t : nat) : vector := snd (environment s t).
  Definition table_of (s : State) (t : nat) : table := fst (environment s t).

  Definition books_of (x : nat) : list nat := book_of x :: match keys_of x with Some c => [c] | None => [] end.
  Definition own (b x : nat) : bool := existsb (Nat.eqb b) (books_of x).

  (** How many records of a table one record of the book's roots can change. *)
  Definition reach (b : nat) (A : Accounts) (v : vector) : R :=
    largest (fun x => if own b x then price (fresh A) v 1 x else 0) 0 roots 0.

  (** Queries side by side cost what the dearest does. *)
  Fixpoint dearest (n : notion) (Qs : list (mechanism S)) (e s : R) : option R :=
    match Qs with
    | [] => Some 0
    | q :: Qs => match kappa S rates n q e s, dearest n Qs e s with Some k, Some m => Some (Rmax k m) | _, _ => None end
    end.

  Definition spent (Qs : list (mechanism S)) : R := fold_right (fun q d => Rmax (spends S rates q) d) 0 Qs.

  (** What a book is charged per unit of distance: nothing where the table is not
      in reach of its roots. *)
  Definition rate (s : State) (b : nat) (v : vector) (Qs : list (mechanism S)) (e : R) : option R :=
    let r := reach b (book s b) v in
    if Req_EM_T r 0 then Some 0 else match kind b with Loss n => dearest n Qs e r | Keys => Some (spent Qs) end.
  Definition rate_or_0 s b v Qs e : R := match rate s b v Qs e with Some k => k | None => 0 end.

  (** Nobody spends a δ of a root that has none. *)
  Definition has_delta (s : State) v Qs (x : nat) : bool :=
    match keys_of x with
    | Some _ => true
    | None => if Req_EM_T (spent Qs) 0 then true else
        if Req_EM_T (price (fresh (book s (book_of x))) v 1 x) 0 then true else false
    end.

  Definition may_ask (s : State) v Qs e : bool :=
    forallb (fun x => (match rate s (book_of x) v Qs e with Some _ => true | None => false end && has_delta s v Qs x)%bool)
      (seq 0 roots).

  Definition charged (s : State) v Qs e (b : nat) : Accounts := charge (book s b) v (rate_or_0 s b v Qs e).

  Definition within (books : nat -> Accounts) : bool :=
    forallb (fun x => forallb (fun b => if Rle_dec (counters (books b) x) (budget b x) then true else false) (books_of x))
      (seq 0 roots).

  Definition step (s : State) (a : Action) : Transition :=
    match a with
    | Silent => (Shows S (Tau S), s)
    | Assign t F ts => let (r, u) := assign S (view s 0) t F ts in
        (r, {| environment := General.environment S u; book := book s |})
    | Partition_ t f k dest => let (r, u) := partition S (view s 0) t f k dest in
        (r, {| environment := General.environment S u; book := fun b => divide (book s b) (sensitivity_of s t) k |})
    | Query t f Qs e =>
        if Rlt_dec 0 e then
          if may_ask s (sensitivity_of s t) Qs e then
            let books := charged s (sensitivity_of s t) Qs e in
            if within books then (Measures S (table_of s t) f Qs e, {| environment := environment s; book := books |})
            else (Shows S (Bottom S), s)
          else (Shows S (Refused S), s)
        else (Shows S (Refused S), s)
    | AskScale t => (Shows S (Scale S (scaling_factor roots (book s 0) (sensitivity_of s t))), s)
    | AskBudget => (Shows S (Budget S (map (fun x => budget (book_of x) x - counters (book s (book_of x)) x) (seq 0 roots))), s)
    | AskPrice t Qs e =>
        if Rlt_dec 0 e then
          if may_ask s (sensitivity_of s t) Qs e then
            (Shows S (Price S (map (fun x => price (book s (book_of x)) (sensitivity_of s t)
              (rate_or_0 s (book_of x) (sensitivity_of s t) Qs e) x) (seq 0 roots))), s)
          else (Shows S (Refused S), s)
        else (Shows S (Refused S), s)
    end.

  (** ** Traces *)

  Variable client : Client.
  Definition reply (p : program client) (s : State) : Reply S := fst (step s (does client p)).
  Definition next (p : program client) (s : State) : State := snd (step s (does client p)).

  Fixpoint probability (n : nat) (p : program client) (s : State) (t : list Observation) : R :=
    match n, t with
    | O, [] => 1
    | Datatypes.S n, o :: t => chances S (reply p s) o * probability n (told client p o) (next p s) t
    | _, _ => 0
    end.

  Fixpoint reached (p : program client) (s : State) (t : list Observation) : State :=
    match t with [] => s | o :: t => reached (told client p o) (next p s) t end.

  Lemma step_runnable s a : runnable S (fst (step s a)).
  Proof.
    destruct a; simpl; auto.
    - unfold assign. destruct (combine _ _ _); exact I.
    - destruct (Rlt_dec 0 e); [|exact I]. destruct (may_ask _ _ _ _); [|exact I]. destruct (within _); [assumption|exact I].
    - destruct (Rlt_dec 0 e); [|exact I]. destruct (may_ask _ _ _ _); exact I.
  Qed.

  Theorem traces_sum_to_one n : forall p s, distribution (probability n p s).
  Proof.
    induction n as [|n IH]; intros p s.
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution (observation_dec S) (chances S (reply p s))
        (fun o => probability n (told client p o) (next p s)))].
      + intros []; reflexivity.
      + apply chances_distribution, step_runnable.
      + intros o. apply IH.
  Qed.

  Lemma probability_nonneg n p s t : 0 <= probability n p s t.
  Proof. apply traces_sum_to_one. Qed.

  (** ** The loss of queries side by side *)

  Lemma dearest_nonneg n Qs e s k : 0 < e -> 0 <= s -> dearest n Qs e s = Some k -> 0 <= k.
  Proof.
    intros He Hs. revert k. induction Qs as [|q Qs IH]; intros k; simpl; [intros E; injection E as <-; lra|].
    destruct (kappa S rates n q e s) as [k1|] eqn:K1; [|discriminate]. destruct (dearest n Qs e s) as [k2|]; [|discriminate].
    intros E. injection E as <-. eapply Rle_trans; [apply (kappa_nonneg S rates _ _ _ _ _ He Hs K1)|apply Rmax_l].
  Qed.

  Lemma spent_nonneg Qs : 0 <= spent Qs.
  Proof. induction Qs as [|q Qs IH]; simpl; [lra|]. eapply Rle_trans; [exact IH|apply Rmax_r]. Qed.

  (** The cores of the answers, beside another table. *)
  Fixpoint core_parallel (f : splitter S) (e : R) (T U : table) (i : nat) (Qs : list (mechanism S)) (vs : list (answer S)) : R :=
    match Qs, vs with
    | [], [] => 1
    | q :: Qs, v :: vs => core S rates q e (part S f i T) (part S f i U) v * core_parallel f e T U (Datatypes.S i) Qs vs
    | _, _ => 0
    end.

  Lemma core_parallel_distribution f e T U : 0 < e -> forall Qs i, distribution (core_parallel f e T U i Qs).
  Proof.
    intros He. induction Qs as [|q Qs IH]; intros i.
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution (answer_dec S) (core S rates q e (part S f i T) (part S f i U))
        (fun _ => core_parallel f e T U (Datatypes.S i) Qs))].
      + intros []; reflexivity.
      + apply core_distribution, He.
      + intros _. apply IH.
  Qed.

  Lemma part_same f T U i : distance T U = 0%nat -> distance (part S f i T) (part S f i U) = 0%nat.
  Proof.
    intros E. pose proof (part_stable S f (Datatypes.S i) T U) as L. rewrite E in L.
    assert (K : forall n j g, (g (j + n) <= sum_from j (Datatypes.S n) g)%nat).
    { induction n as [|n IH]; intros j g; [simpl; rewrite Nat.add_0_r; lia|].
      specialize (IH (Datatypes.S j) g). replace (Datatypes.S j + n)%nat with (j + Datatypes.S n)%nat in IH by lia.
      cbn [sum_from] in *. lia. }
    specialize (K i 0%nat (fun i => distance (part S f i T) (part S f i U))). change (0 + i)%nat with i in K. cbv beta in K. lia.
  Qed.

  Lemma parallel_same f e T U : distance T U = 0%nat -> forall Qs i vs, parallel S f e T i Qs vs = parallel S f e U i Qs vs.
  Proof.
    intros E. induction Qs as [|q Qs IH]; intros i [|v vs]; simpl; auto.
    rewrite (mass_same S q e _ _ v (part_same f T U i E)), IH. reflexivity.
  Qed.

  Lemma core_parallel_same f e T U : distance T U = 0%nat -> forall Qs i vs,
    core_parallel f e T U i Qs vs = parallel S f e T i Qs vs /\ core_parallel f e U T i Qs vs = parallel S f e U i Qs vs.
  Proof.
    intros E. induction Qs as [|q Qs IH]; intros i [|v vs]; simpl; auto.
    destruct (core_same S rates q e _ _ v (part_same f T U i E)) as [-> ->]. destruct (IH (Datatypes.S i) vs) as [-> ->]. auto.
  Qed.

  Lemma core_parallel_below n f e s T U : 0 < e -> forall Qs i k vs, dearest n Qs e s = Some k ->
    let away := INR (sum_from i (length Qs) (fun j => distance (part S f j T) (part S f j U))) in
    (spent Qs = 0 \/ away <= s) ->
    (1 - spent Qs * away) * core_parallel f e T U i Qs vs <= parallel S f e T i Qs vs /\
    (1 - spent Qs * away) * core_parallel f e U T i Qs vs <= parallel S f e U i Qs vs.
  Proof.
    intros He. induction Qs as [|q Qs IH]; intros i k vs E away Ha.
    - unfold away. destruct vs; simpl; lra.
    - simpl in E. destruct (kappa S rates n q e s) as [k1|] eqn:K1; [|discriminate].
      destruct (dearest n Qs e s) as [k2|] eqn:K2; [|discriminate]. clear E.
      unfold away in *. clear away. cbn [length sum_from] in *. rewrite plus_INR in *.
      set (d := distance (part S f i T) (part S f i U)) in *.
      set (later := INR (sum_from _ _ _)) in *. assert (0 <= INR d) by apply pos_INR. assert (0 <= later) by apply pos_INR.
      destruct vs as [|v vs]; [simpl; lra|]. cbn [core_parallel parallel].
      change (spent (q :: Qs)) with (Rmax (spends S rates q) (spent Qs)) in *. set (m := Rmax (spends S rates q) (spent Qs)) in *.
      pose proof (spends_nonneg S rates q) as N1. pose proof (spent_nonneg Qs) as N2.
      assert (M1 : spends S rates q <= m) by apply Rmax_l. assert (M2 : spent Qs <= m) by apply Rmax_r.
      destruct (core_below S rates n q e s k1 (part S f i T) (part S f i U) v He K1) as [B1 B2]; [fold d; destruct Ha; [left|right]; lra|].
      fold d in B1, B2.
      destruct (IH (Datatypes.S i) k2 vs eq_refl) as [C1 C2]; [fold later; destruct Ha; [left|right]; lra|]. fold later in C1, C2.
      assert (W : spends S rates q * INR d + spent Qs * later <= m * (INR d + later)).
      { assert (spends S rates q * INR d <= m * INR d) by (apply Rmult_le_compat_r; assumption).
        assert (spent Qs * later <= m * later) by (apply Rmult_le_compat_r; assumption). lra. }
      pose proof (fun X Y => nonnegative _ (core_distribution S rates q e X Y He) v) as P1.
      pose proof (fun X Y => nonnegative _ (core_parallel_distribution f e X Y He Qs (Datatypes.S i)) vs) as P2.
      pose proof (fun X => nonnegative _ (mass_distribution S q e X He) v) as P3.
      pose proof (fun X => parallel_nonneg S f e X Qs vs (Datatypes.S i) He) as P4.
      pose proof (Rmult_le_pos _ _ N1 H) as Q1. pose proof (Rmult_le_pos _ _ N2 H0) as Q2.
      split; (eapply Rle_trans; [apply (Rmult_le_compat_r _ _ (1 - (spends S rates q * INR d + spent Qs * later)));
        [apply Rmult_le_pos; [apply P1|apply P2]|lra]|]); apply parts_multiply; auto.
  Qed.

  Lemma parallel_alike_from n f e s T U : 0 < e -> 0 <= s -> forall Qs i k, dearest n Qs e s = Some k ->
    let away := INR (sum_from i (length Qs) (fun j => distance (part S f j T) (part S f j U))) in
    (n = Concentrated -> away <= s) ->
    alike n (fun _ => k * away) (core_parallel f e T U i Qs) (core_parallel f e U T i Qs) /\
    alike n (fun _ => k * away) (core_parallel f e U T i Qs) (core_parallel f e T U i Qs).
  Proof.
    intros He Hs. induction Qs as [|q Qs IH]; intros i k E away Ha.
    - injection E as <-. unfold away. simpl. rewrite Rmult_0_l.
      split; intros o Ho; pose proof (looks_proper n o Ho) as Hp; apply (close_ext o Hp (fun _ => 0) _ ended ended);
        try (intros []; reflexivity); apply (close_same o Hp), ended_distribution.
    - simpl in E. destruct (kappa S rates n q e s) as [k1|] eqn:K1; [|discriminate].
      destruct (dearest n Qs e s) as [k2|] eqn:K2; [|discriminate]. injection E as <-.
      unfold away in *. clear away. cbn [length sum_from] in *. rewrite plus_INR in *.
      set (d := distance (part S f i T) (part S f i U)) in *.
      set (later := INR (sum_from _ _ _)) in *. assert (0 <= INR d) by apply pos_INR. assert (0 <= later) by apply pos_INR.
      destruct (kappa_covers S rates n q e s k1 (part S f i T) (part S f i U) He K1) as [C1 C2];
        [fold d; intros Hn; specialize (Ha Hn); lra|]. fold d in C1, C2.
      destruct (IH (Datatypes.S i) k2 eq_refl) as [I1 I2]; [fold later; intros Hn; specialize (Ha Hn); lra|]. fold later in I1, I2.
      pose proof (kappa_nonneg S rates _ _ _ _ _ He Hs K1) as P1. pose proof (dearest_nonneg _ _ _ _ _ He Hs K2) as P2.
      assert (W : k1 * INR d + k2 * later <= Rmax k1 k2 * (INR d + later)).
      { assert (k1 * INR d <= Rmax k1 k2 * INR d) by (apply Rmult_le_compat_r; [assumption|apply Rmax_l]).
        assert (k2 * later <= Rmax k1 k2 * later) by (apply Rmult_le_compat_r; [assumption|apply Rmax_r]). lra. }
      pose proof (Rmult_le_pos _ _ P1 H) as Q1. pose proof (Rmult_le_pos _ _ P2 H0) as Q2.
      assert (Go : forall X Y, alike n (fun _ => k1 * INR d) (core S rates q e (part S f i X) (part S f i Y)) (core S rates q e (part S f i Y) (part S f i X)) ->
        alike n (fun _ => k2 * later) (core_parallel f e X Y (Datatypes.S i) Qs) (core_parallel f e Y X (Datatypes.S i) Qs) ->
        alike n (fun _ => Rmax k1 k2 * (INR d + later)) (core_parallel f e X Y i (q :: Qs)) (core_parallel f e Y X i (q :: Qs))).
      { intros X Y C I o Ho. pose proof (looks_proper n o Ho) as Hp. specialize (C o Ho). specialize (I o Ho).
        apply (close_weaken o Hp (fun t => match t with [] => 0 | x :: t => k1 * INR d + k2 * later end)).
        + apply core_parallel_distribution, He.
        + apply core_parallel_distribution, He.
        + intros []; lra.
        + eapply (close_ext o Hp); [..|apply (close_sequence o Hp (answer_dec S) (fun _ => k1 * INR d) (fun _ _ => k2 * later)
            (core S rates q e (part S f i X) (part S f i Y)) (core S rates q e (part S f i Y) (part S f i X))
            (fun _ => core_parallel f e X Y (Datatypes.S i) Qs) (fun _ => core_parallel f e Y X (Datatypes.S i) Qs))];
            try (intros []; reflexivity); auto.
          * apply core_distribution, He.
          * apply core_distribution, He.
          * intros. apply core_parallel_distribution, He.
          * intros. apply core_parallel_distribution, He. }
      split; apply Go; assumption.
  Qed.

  Lemma alike_more n {A} r r' (p q : A -> R) : distribution p -> distribution q -> r <= r' ->
    alike n (fun _ => r) p q -> alike n (fun _ => r') p q.
  Proof.
    intros P Q L C o Ho. apply (close_weaken o (looks_proper n o Ho) (fun _ => r)); auto; [apply P|apply Q].
  Qed.

  (** ** The invariant of one book *)

  Section OneBook.
    Variable b : nat.

    (** What a book speaks about: databases that differ in its own roots; by one
        record in all, if it is concentrated, or in δ. *)
    Definition about (d : vector) : Prop :=
      (forall x, (x < roots)%nat -> own b x = false -> d x = 0) /\
      (kind b <> Loss Pure -> dot roots (fun _ => 1) d <= 1).

    Record sound (s : State) (d : vector) : Prop := {
      sound_sources : forall c, sources (book s c) = sources (book s 0);
      sound_well : well S roots (view s b) d;
      sound_about : about d }.

    Definition similar (s s' : State) (d : vector) : Prop :=
      book s = book s' /\ General.similar S (view s b) (view s' b) d.

    Definition psi (s : State) (d : vector) : R := Psi (book s b) d.

    Lemma similar_sensitivity s s' d t : similar s s' d -> sensitivity_of s t = sensitivity_of s' t.
    Proof. intros [_ [_ H]]. apply (H t). Qed.

    Lemma about_ext d d' : (forall x, (x < roots)%nat -> d' x = d x) -> about d -> about d'.
    Proof.
      intros E [H1 H2]. split.
      - intros x Hx Ho. rewrite (E x Hx). auto.
      - intros Hk. rewrite (dot_ext roots (fun _ => 1) (fun _ => 1) d' d); auto.
    Qed.

    (** A table is within the prices of its roots, and so within its scale. *)
    Lemma prices_cover s d t : sound s d ->
      dot (sources (book s b)) (sensitivity_of s t) d <= dot roots (price (fresh (book s b)) (sensitivity_of s t) 1) d.
    Proof. intros [_ [] _]. simpl in *. apply (price_covers roots); eassumption. Qed.

    Lemma reach_covers s d t : sound s d ->
      dot (sources (book s b)) (sensitivity_of s t) d <=
        reach b (book s b) (sensitivity_of s t) * dot roots (fun _ => 1) d.
    Proof.
      intros H. eapply Rle_trans; [apply prices_cover, H|]. destruct H as [_ [] [A _]]. simpl in *. set (v := sensitivity_of s t) in *.
      set (f := fun x => if own b x then price (fresh (book s b)) v 1 x else 0).
      rewrite (dot_ext roots (price (fresh (book s b)) v 1) (price (fresh (book s b)) v 1) d
        (fun x => if own b x then d x else 0)).
      2:{ intros x Hx. split; auto. destruct (own b x) eqn:Ho; auto. }
      assert (E : dot roots (price (fresh (book s b)) v 1) (fun x => if own b x then d x else 0) = dot roots f d).
      { clear. induction roots as [|m IH]; simpl; auto. rewrite IH. unfold f. destruct (own b m); ring. }
      rewrite E. apply total_distance; auto. intros x Hx. apply (largest_bounds f 0 roots 0). exact Hx.
    Qed.

    Lemma reach_nonneg A v : 0 <= reach b A v.
    Proof. apply (largest_bounds _ 0 roots 0). Qed.

    (** ** One step, in one book *)

    (** A step that shows what is public anyway, and does not move Ψ. *)
    Definition holds_still (s s' : State) (d : vector) (r r' : Reply S) (u u' : State) : Prop :=
      exists d', sound u d' /\ similar u u' d' /\ (forall x, (x < roots)%nat -> d' x = d x) /\ psi u d' = psi s d /\
        exists o, r = Shows S o /\ r' = Shows S o.

    Lemma shown_still s s' d o : sound s d -> similar s s' d -> holds_still s s' d (Shows S o) (Shows S o) s s'.
    Proof. intros H K. exists d. repeat (split; auto); try apply K. exists o. auto. Qed.

    (** Assignments and partitions are as in the general semantics, in each book. *)
    Lemma kept_still s s' d r r' u u' : sound s d -> similar s s' d ->
      keeps S roots (counters (book s b)) (view s b) (view s' b) d r r' (view u b) (view u' b) ->
      (forall c, sources (book u c) = sources (book u 0)) ->
      (forall x, counters (book u b) x = counters (book s b) x) -> book u = book u' -> holds_still s s' d r r' u u'.
    Proof.
      intros H K (d' & Hu & Ku & E & P & o & -> & ->) Hc Hx Hb. exists d'. split; [|split; [|split; [exact E|split]]].
      - destruct H. split; auto.
        + apply (rebudget S roots (counters (book s b))); auto. intros. apply Rle_refl.
        + apply (about_ext d); auto.
      - split; [exact Hb|exact Ku].
      - exact P.
      - exists o. auto.
    Qed.

    Lemma assign_still s s' d t F ts : sound s d -> similar s s' d ->
      holds_still s s' d (fst (step s (Assign t F ts))) (fst (step s' (Assign t F ts)))
        (snd (step s (Assign t F ts))) (snd (step s' (Assign t F ts))).
    Proof.
      intros H K. pose proof K as [HB HK].
      pose proof (assign_keeps S roots (counters (book s b)) (view s b) (view s' b) d t F ts (sound_well _ _ H) HK) as G.
      cbn [step]. unfold assign in *. cbn [accounts view] in *. rewrite <- HB in *. rewrite (sound_sources _ _ H b) in G.
      change (General.sensitivity_of S (view s b)) with (General.sensitivity_of S (view s 0)) in G.
      change (General.sensitivity_of S (view s' b)) with (General.sensitivity_of S (view s' 0)) in G.
      assert (E : map (General.sensitivity_of S (view s' 0)) ts = map (General.sensitivity_of S (view s 0)) ts).
      { apply map_ext. intros y. symmetry. apply (similar_sensitivity s s' d y K). }
      rewrite E in *. destruct (combine _ _ _) as [v|]; cbn [fst snd] in *.
      - apply (kept_still s s' d); auto. simpl. intros. apply H.
      - unfold view in G. rewrite <- HB in G. apply (kept_still s s' d); auto. intros. apply H.
    Qed.

    Lemma partition_still s s' d t f k dest : sound s d -> similar s s' d ->
      holds_still s s' d (fst (step s (Partition_ t f k dest))) (fst (step s' (Partition_ t f k dest)))
        (snd (step s (Partition_ t f k dest))) (snd (step s' (Partition_ t f k dest))).
    Proof.
      intros H K. pose proof K as [HB HK].
      pose proof (partition_keeps S roots (counters (book s b)) (view s b) (view s' b) d t f k dest (sound_well _ _ H) HK) as G.
      cbn [step]. unfold partition in *. cbn [accounts view fst snd] in *. rewrite <- HB in *.
      rewrite (sound_sources _ _ H b) in G. rewrite <- (similar_sensitivity s s' d t K).
      apply (kept_still s s' d); auto; simpl.
      - unfold view. simpl. change (sensitivity_of s t) with (General.sensitivity_of S (view s b) t). revert G.
        change (General.sensitivity_of S (view s' b) t) with (sensitivity_of s' t).
        rewrite <- (similar_sensitivity s s' d t K). intros G. exact G.
      - intros c. rewrite (sound_sources _ _ H c). reflexivity.
    Qed.

    Lemma rate_nonneg s v Qs e : 0 < e -> 0 <= rate_or_0 s b v Qs e.
    Proof.
      intros He. unfold rate_or_0, rate. destruct (Req_EM_T _ 0); [lra|]. destruct (kind b); [|apply spent_nonneg].
      destruct (dearest n0 Qs e (reach b (book s b) v)) eqn:E; [|lra]. apply (dearest_nonneg _ _ _ _ _ He (reach_nonneg _ _) E).
    Qed.

    (** Ψ grows by the rate times v·d. *)
    Lemma charge_moves_book s s' d t Qs e : sound s d -> similar s s' d -> 0 < e ->
      let v := sensitivity_of s t in
      let u := {| environment := environment s; book := charged s v Qs e |} in
      let u' := {| environment := environment s'; book := charged s v Qs e |} in
      sound u d /\ similar u u' d /\ psi u d = psi s d + rate_or_0 s b v Qs e * dot (sources (book s b)) v d.
    Proof.
      intros H K He v u u'. pose proof K as [HB HK]. set (k := rate_or_0 s b v Qs e).
      assert (Hk : 0 <= k) by (apply rate_nonneg, He).
      destruct (charge_moves S roots (counters (charge (book s b) v k)) (view s b) (view s' b) d t k) as (Hu & Ku & EP); auto.
      { apply (rebudget S roots (counters (book s b))); [apply H|]. intros x Hx. destruct (sound_well _ _ H).
        apply (charge_grows roots); auto. apply sound_nonneg. }
      { intros. apply Rle_refl. }
      split; [|split].
      - split; simpl.
        + intros c. destruct H. assert (Y : forall A k, sources (charge A v k) = sources A).
          { intros A k'. unfold charge. destruct (settle _ _). reflexivity. }
          unfold charged. rewrite !Y. apply sound_sources0.
        + exact Hu.
        + apply H.
      - split; [reflexivity|exact Ku].
      - exact EP.
    Qed.

    (** What is paid afterwards is within the budget, or what it was. *)
    Lemma step_pays s a : (forall x, (x < roots)%nat -> own b x = true -> counters (book (snd (step s a)) b) x <= budget b x) \/
      (forall x, counters (book (snd (step s a)) b) x = counters (book s b) x).
    Proof.
      destruct a; try (right; reflexivity).
      - right. cbn [step]. unfold assign. destruct (combine _ _ _); reflexivity.
      - cbn [step]. destruct (Rlt_dec 0 e); [|right; reflexivity]. destruct (may_ask _ _ _ _); [|right; reflexivity].
        destruct (within _) eqn:Hw; [|right; reflexivity]. left. intros x Hx Ho. unfold within in Hw. rewrite forallb_forall in Hw.
        specialize (Hw x ltac:(apply in_seq; lia)). rewrite forallb_forall in Hw. unfold own in Ho. apply existsb_exists in Ho.
        destruct Ho as (c & Hc & Eq). apply Nat.eqb_eq in Eq. subst c. specialize (Hw b Hc). cbn [snd book]. destruct (Rle_dec _ _); [assumption|discriminate].
      - right. cbn [step]. destruct (Rlt_dec 0 e); [|reflexivity]. destruct (may_ask _ _ _ _); reflexivity.
    Qed.

    (** What the roots have paid in the book, for so many records of each. *)
    Definition paid (s : State) (d : vector) : R := dot roots (counters (book s b)) d.

    Lemma psi_paid s d : sound s d -> psi s d <= paid s d.
    Proof. intros [_ [] _]. unfold psi, Psi, paid. apply (potential_le_roots roots); assumption. Qed.
  End OneBook.

  (** ** Two runs, in a book and beside it in one in δ *)

  Definition core_chances (r r' : Reply S) : Observation -> R :=
    match r, r' with
    | Measures _ T f Qs e, Measures _ U _ _ _ => fun o => match o with Answers _ vs => core_parallel f e T U 0 Qs vs | _ => 0 end
    | _, _ => chances S r
    end.

  Lemma core_chances_distribution r r' : runnable S r -> distribution (core_chances r r').
  Proof.
    destruct r as [o|T f Qs e]; [intros _; apply (chances_distribution S (Shows S o)); exact I|].
    destruct r' as [o'|U f' Qs' e']; [apply (chances_distribution S (Measures S T f Qs e))|]. intros He. simpl.
    eapply distribution_ext; [|apply (distribution_rename (core_parallel f e T U 0 Qs) (Answers S)
      (fun o => match o with Answers _ vs => Some vs | _ => None end))].
    - intros []; reflexivity.
    - intros o vs. destruct o; split; intros K; congruence.
    - apply core_parallel_distribution, He.
  Qed.

  Section TwoRuns.
    Variables (b : nat) (n : notion) (delta_book : option nat).
    Hypothesis b_kind : kind b = Loss n.
    Hypothesis b_used : exists x, (x < roots)%nat /\ book_of x = b.

    (** Where the databases differ in a root with a δ, they do so by one record,
        and its book in δ is looked at; else no root that has one differs. *)
    Definition beside (s s' : State) (d dk : vector) : Prop :=
      match delta_book with
      | Some c => kind c = Keys /\ sound c s dk /\ similar c s s' dk /\ (forall x, (x < roots)%nat -> dk x = d x)
      | None => forall x, (x < roots)%nat -> keys_of x <> None -> d x = 0
      end.

    Record paired (s s' : State) (d dk : vector) : Prop := {
      paired_sound : sound b s d;
      paired_similar : similar b s s' d;
      paired_beside : beside s s' d dk }.

    Definition keys_psi (s : State) (dk : vector) : R := match delta_book with Some c => psi c s dk | None => 0 end.

    (** What a step does: the cores are close at what Ψ grows by, and the laws have
        all of them but what Ψ grows by in δ. *)
    Definition advances (s s' : State) (d dk : vector) (r r' : Reply S) (u u' : State) : Prop :=
      exists d' dk', paired u u' d' dk' /\ (forall x, (x < roots)%nat -> d' x = d x) /\ (forall x, (x < roots)%nat -> dk' x = dk x) /\
        0 <= keys_psi u dk' - keys_psi s dk /\
        alike n (fun _ => psi b u d' - psi b s d) (core_chances r r') (core_chances r' r) /\
        alike n (fun _ => psi b u d' - psi b s d) (core_chances r' r) (core_chances r r') /\
        (forall o, (1 - (keys_psi u dk' - keys_psi s dk)) * core_chances r r' o <= chances S r o) /\
        (forall o, (1 - (keys_psi u dk' - keys_psi s dk)) * core_chances r' r o <= chances S r' o).

    Lemma still_advances s s' d dk r r' u u' : paired s s' d dk ->
      (forall c dc, sound c s dc -> similar c s s' dc -> holds_still c s s' dc r r' u u') -> advances s s' d dk r r' u u'.
    Proof.
      intros [H K B] G. destruct (G b d H K) as (d' & H1 & K1 & E1 & P1 & o & -> & ->).
      assert (X : exists dk', beside u u' d' dk' /\ (forall x, (x < roots)%nat -> dk' x = dk x) /\ keys_psi u dk' = keys_psi s dk).
      { unfold beside, keys_psi in *. destruct delta_book as [c|].
        - destruct B as (Hc & H2 & K2 & E2). destruct (G c dk H2 K2) as (dk' & H3 & K3 & E3 & P3 & _). exists dk'.
          repeat (split; auto); try apply K3. intros x Hx. rewrite E3, E2, E1; auto.
        - exists dk. repeat split; auto. intros x Hx Hk. rewrite E1 by exact Hx. auto. }
      destruct X as (dk' & B' & E2 & P2). exists d', dk'. split; [split; assumption|]. split; [exact E1|]. split; [exact E2|].
      rewrite P1, P2. replace (psi b s d - psi b s d) with 0 by ring. replace (keys_psi s dk - keys_psi s dk) with 0 by ring.
      assert (C : alike n (fun _ => 0) (core_chances (Shows S o) (Shows S o)) (core_chances (Shows S o) (Shows S o))).
      { intros q Hq. apply (close_same q (looks_proper _ _ Hq)), certain_distribution. }
      split; [lra|]. split; [exact C|]. split; [exact C|]. split; intros o'; simpl; lra.
    Qed.

    Lemma rate_known s v Qs e : may_ask s v Qs e = true -> exists k, rate s b v Qs e = Some k.
    Proof.
      intros H. destruct b_used as (x & Hx & E). unfold may_ask in H. rewrite forallb_forall in H.
      specialize (H x ltac:(apply in_seq; lia)). rewrite E in H. destruct (rate s b v Qs e) as [k|]; [exists k; reflexivity|discriminate].
    Qed.

    (** Where a δ is spent and none is looked at, nothing differs. *)
    Lemma unspent s s' d dk t Qs e : paired s s' d dk -> delta_book = None -> may_ask s (sensitivity_of s t) Qs e = true ->
      spent Qs <> 0 -> distance (table_of s t) (table_of s' t) = 0%nat.
    Proof.
      intros [H K B] E Hm Hs. unfold beside in B. rewrite E in B. pose proof (prices_cover b s d t H) as P.
      assert (Hd : INR (distance (table_of s t) (table_of s' t)) <= dot (sources (book s b)) (sensitivity_of s t) d) by apply K.
      assert (Z : dot roots (price (fresh (book s b)) (sensitivity_of s t) 1) d = 0).
      { unfold may_ask in Hm. rewrite forallb_forall in Hm.
        assert (G : forall m, (m <= roots)%nat -> dot m (price (fresh (book s b)) (sensitivity_of s t) 1) d = 0); [|apply G; lia].
        induction m as [|m IH]; intros Hr; simpl; auto. rewrite IH by lia. specialize (Hm m ltac:(apply in_seq; lia)).
        apply andb_prop in Hm. destruct Hm as [_ Hm]. unfold has_delta in Hm. destruct (keys_of m) as [c|] eqn:Ek.
        - rewrite (B m) by (lia || congruence). ring.
        - destruct (Req_EM_T (spent Qs) 0); [contradiction|]. destruct (own b m) eqn:Ho.
          + unfold own, books_of in Ho. rewrite Ek in Ho. cbn [existsb] in Ho. rewrite Bool.orb_false_r in Ho. apply Nat.eqb_eq in Ho.
            rewrite <- Ho in Hm. destruct (Req_EM_T _ 0) as [Z|]; [rewrite Z; ring|discriminate].
          + destruct (sound_about _ _ _ H) as [A _]. rewrite (A m) by (lia || assumption). ring. }
      apply INR_eq. pose proof (pos_INR (distance (table_of s t) (table_of s' t))). simpl. lra.
    Qed.

    Lemma query_advances s s' d dk t f Qs e : paired s s' d dk -> 0 < e -> may_ask s (sensitivity_of s t) Qs e = true ->
      advances s s' d dk (Measures S (table_of s t) f Qs e) (Measures S (table_of s' t) f Qs e)
        {| environment := environment s; book := charged s (sensitivity_of s t) Qs e |}
        {| environment := environment s'; book := charged s (sensitivity_of s t) Qs e |}.
    Proof.
      intros HP He Hm. pose proof HP as [H K B]. set (v := sensitivity_of s t) in *.
      set (T := table_of s t). set (U := table_of s' t).
      destruct (rate_known s v Qs e Hm) as (k & Ek).
      assert (Hd : INR (distance T U) <= dot (sources (book s b)) v d) by apply K.
      assert (D0 : 0 <= INR (distance T U)) by apply pos_INR.
      pose proof (reach_covers b s d t H) as HC. fold v in HC. set (r := reach b (book s b) v) in *.
      assert (HR : 0 <= r) by apply reach_nonneg.
      destruct (charge_moves_book b s s' d t Qs e H K He) as (Hu & Ku & EP). fold v in Hu, Ku, EP.
      unfold rate_or_0 in EP. rewrite Ek in EP.
      assert (Hk : 0 <= k) by (pose proof (rate_nonneg b s v Qs e He) as X; unfold rate_or_0 in X; rewrite Ek in X; exact X).
      (* one record in all, unless the book is pure and no δ is looked at *)
      assert (One : n = Concentrated \/ delta_book <> None -> INR (distance T U) <= r).
      { intros X. assert (A : dot roots (fun _ => 1) d <= 1).
        { destruct X as [X|X].
          - apply (sound_about _ _ _ H). rewrite b_kind, X. discriminate.
          - unfold beside in B. destruct delta_book as [c|]; [|contradiction]. destruct B as (Hc & H2 & _ & E2).
            rewrite (dot_ext roots (fun _ => 1) (fun _ => 1) d dk); [apply (sound_about _ _ _ H2); rewrite Hc; discriminate|].
            intros x Hx. split; auto. symmetry. apply E2, Hx. }
        assert (r * dot roots (fun _ => 1) d <= r * 1) by (apply Rmult_le_compat_l; assumption). lra. }
      (* how Ψ in δ moves *)
      assert (Y : exists g, 0 <= g /\ (delta_book = None \/ spent Qs * INR (distance T U) <= g) /\ (delta_book = None -> g = 0) /\
        beside {| environment := environment s; book := charged s v Qs e |} {| environment := environment s'; book := charged s v Qs e |} d dk /\
        keys_psi {| environment := environment s; book := charged s v Qs e |} dk - keys_psi s dk = g).
      { unfold beside, keys_psi in *. destruct delta_book as [c|].
        - destruct B as (Hc & H2 & K2 & E2). destruct (charge_moves_book c s s' dk t Qs e H2 K2 He) as (Hu2 & Ku2 & EP2).
          fold v in Hu2, Ku2, EP2. exists (rate_or_0 s c v Qs e * dot (sources (book s c)) v dk).
          assert (Hd2 : INR (distance T U) <= dot (sources (book s c)) v dk) by apply K2.
          pose proof (rate_nonneg c s v Qs e He) as Hr2. split; [apply Rmult_le_pos; lra|]. split; [right|split; [discriminate|]].
          + pose proof (reach_covers c s dk t H2) as HC2. fold v in HC2. unfold rate_or_0, rate in *. rewrite Hc in *.
            destruct (Req_EM_T (reach c (book s c) v) 0) as [Z|Z].
            * rewrite Z in HC2. assert (INR (distance T U) = 0) by lra. rewrite H0. lra.
            * apply Rmult_le_compat_l; [apply spent_nonneg|exact Hd2].
          + split; [|rewrite EP2; ring]. repeat (split; auto); try apply Ku2; try apply Hu2.
        - exists 0. repeat split; auto; try lra. }
      destruct Y as (g & Hg & Hgs & Hg0 & B' & Eg).
      (* the cores *)
      assert (X : alike n (fun _ => k * INR (distance T U)) (core_parallel f e T U 0 Qs) (core_parallel f e U T 0 Qs) /\
        alike n (fun _ => k * INR (distance T U)) (core_parallel f e U T 0 Qs) (core_parallel f e T U 0 Qs) /\
        forall vs, (1 - g) * core_parallel f e T U 0 Qs vs <= parallel S f e T 0 Qs vs /\
          (1 - g) * core_parallel f e U T 0 Qs vs <= parallel S f e U 0 Qs vs).
      { assert (Zero : distance T U = 0%nat -> alike n (fun _ => k * INR (distance T U)) (core_parallel f e T U 0 Qs) (core_parallel f e U T 0 Qs) /\
          alike n (fun _ => k * INR (distance T U)) (core_parallel f e U T 0 Qs) (core_parallel f e T U 0 Qs) /\
          forall vs, (1 - g) * core_parallel f e T U 0 Qs vs <= parallel S f e T 0 Qs vs /\
            (1 - g) * core_parallel f e U T 0 Qs vs <= parallel S f e U 0 Qs vs).
        { intros Z.
          assert (E : forall vs, core_parallel f e T U 0 Qs vs = parallel S f e T 0 Qs vs /\ core_parallel f e U T 0 Qs vs = parallel S f e T 0 Qs vs).
          { intros vs. destruct (core_parallel_same f e T U Z Qs 0 vs) as [-> ->]. split; [reflexivity|]. symmetry. apply parallel_same, Z. }
          assert (C : alike n (fun _ => k * INR (distance T U)) (parallel S f e T 0 Qs) (parallel S f e T 0 Qs)).
          { intros o Ho. apply (close_ext o (looks_proper _ _ Ho) (fun _ => 0) _ (parallel S f e T 0 Qs) (parallel S f e T 0 Qs)); auto.
            - intros _. rewrite Z. simpl. ring.
            - apply (close_same o (looks_proper _ _ Ho)), parallel_distribution, He. }
          split; [|split].
          - intros o Ho. specialize (C o Ho). revert C. apply (close_ext o (looks_proper _ _ Ho)); auto; intros vs; symmetry; apply E.
          - intros o Ho. specialize (C o Ho). revert C. apply (close_ext o (looks_proper _ _ Ho)); auto; intros vs; symmetry; apply E.
          - intros vs. destruct (E vs) as [E1 E2]. rewrite E1, E2, <- (parallel_same f e T U Z Qs 0 vs).
            pose proof (parallel_nonneg S f e T Qs vs 0 He) as N. assert (0 <= g * parallel S f e T 0 Qs vs) by (apply Rmult_le_pos; assumption). lra. }
        unfold rate in Ek. fold r in Ek. destruct (Req_EM_T r 0) as [Z|Z].
        { apply Zero. apply INR_eq. rewrite Z in HC. simpl. lra. }
        rewrite b_kind in Ek.
        destruct (Req_EM_T (spent Qs) 0) as [Zs|Zs].
        2:{ destruct delta_book as [c|] eqn:Ed; [|apply Zero, (unspent s s' d dk t Qs e HP Ed Hm Zs)].
            assert (Hr : INR (distance T U) <= r) by (apply One; right; discriminate). revert Hr Hgs.
            pose proof (part_stable S f (length Qs) T U) as L. apply le_INR in L. intros Hr Hgs.
            destruct (parallel_alike_from n f e r T U He HR Qs 0 k Ek) as [A1 A2]; [intros _; lra|].
            split; [|split].
            - eapply alike_more; [..|exact A1]; try (apply core_parallel_distribution, He). apply Rmult_le_compat_l; assumption.
            - eapply alike_more; [..|exact A2]; try (apply core_parallel_distribution, He). apply Rmult_le_compat_l; assumption.
            - intros vs. destruct (core_parallel_below n f e r T U He Qs 0 k vs Ek) as [B1 B2]; [right; lra|].
              destruct Hgs as [|Hgs]; [discriminate|]. pose proof (spent_nonneg Qs) as Ns.
              set (away := INR (sum_from 0 (length Qs) (fun j => distance (part S f j T) (part S f j U)))) in *.
              assert (spent Qs * away <= g) by (eapply Rle_trans; [apply Rmult_le_compat_l; [exact Ns|exact L]|exact Hgs]).
              split; (eapply Rle_trans; [apply (Rmult_le_compat_r _ _ (1 - spent Qs * away));
                [apply core_parallel_distribution, He|lra]|]); assumption. }
        pose proof (part_stable S f (length Qs) T U) as L. apply le_INR in L.
        destruct (parallel_alike_from n f e r T U He HR Qs 0 k Ek) as [A1 A2]; [intros X; pose proof (One (or_introl X)); lra|].
        split; [|split].
        - eapply alike_more; [..|exact A1]; try (apply core_parallel_distribution, He). apply Rmult_le_compat_l; assumption.
        - eapply alike_more; [..|exact A2]; try (apply core_parallel_distribution, He). apply Rmult_le_compat_l; assumption.
        - intros vs. destruct (core_parallel_below n f e r T U He Qs 0 k vs Ek) as [B1 B2]; [left; exact Zs|].
          rewrite Zs, Rmult_0_l, Rminus_0_r, Rmult_1_l in B1, B2.
          pose proof (nonnegative _ (core_parallel_distribution f e T U He Qs 0) vs) as N1.
          pose proof (nonnegative _ (core_parallel_distribution f e U T He Qs 0) vs) as N2.
          pose proof (Rmult_le_pos _ _ Hg N1). pose proof (Rmult_le_pos _ _ Hg N2). split; lra. }
      destruct X as (A1 & A2 & A3).
      exists d, dk. split; [split; assumption|]. split; [auto|]. split; [auto|]. rewrite Eg. split; [exact Hg|].
      assert (Grow : k * INR (distance T U) <= psi b {| environment := environment s; book := charged s v Qs e |} d - psi b s d).
      { rewrite EP. replace (psi b s d + k * dot (sources (book s b)) v d - psi b s d) with (k * dot (sources (book s b)) v d) by ring.
        apply Rmult_le_compat_l; assumption. }
      assert (Wrap : forall X Y, alike n (fun _ => k * INR (distance T U)) (core_parallel f e X Y 0 Qs) (core_parallel f e Y X 0 Qs) ->
        alike n (fun _ => psi b {| environment := environment s; book := charged s v Qs e |} d - psi b s d)
          (core_chances (Measures S X f Qs e) (Measures S Y f Qs e)) (core_chances (Measures S Y f Qs e) (Measures S X f Qs e))).
      { intros X Y C o Ho. pose proof (looks_proper _ _ Ho) as Hp. apply (close_weaken o Hp (fun _ => k * INR (distance T U))).
        - apply (core_chances_distribution (Measures S X f Qs e) (Measures S Y f Qs e)), He.
        - apply (core_chances_distribution (Measures S Y f Qs e) (Measures S X f Qs e)), He.
        - intros _. exact Grow.
        - pose proof (close_rename o Hp (Answers S) (fun o => match o with Answers _ vs => Some vs | _ => None end) _ _ _
            ltac:(intros o' vs; destruct o'; intros Q; congruence) (C o Ho)) as R.
          revert R. apply (close_ext o Hp); [reflexivity|..]; intros []; reflexivity. }
      split; [apply Wrap, A1|]. split; [apply Wrap, A2|]. split; intros []; cbn [core_chances chances]; try lra; apply A3.
    Qed.

    Theorem step_advances s s' d dk a : paired s s' d dk ->
      advances s s' d dk (fst (step s a)) (fst (step s' a)) (snd (step s a)) (snd (step s' a)).
    Proof.
      intros H. pose proof H as [Hs K _]. pose proof K as [HB HK].
      assert (Still : forall o, advances s s' d dk (Shows S o) (Shows S o) s s').
      { intros o. apply still_advances; [exact H|]. intros c dc Hc Kc. apply shown_still; assumption. }
      destruct a; [|apply still_advances; [exact H|]; intros c dc Hc Kc; apply assign_still; assumption
        |apply still_advances; [exact H|]; intros c dc Hc Kc; apply partition_still; assumption|..];
        cbn [step]; rewrite <- ?(similar_sensitivity b s s' d t K).
      - apply Still.
      - destruct (Rlt_dec 0 e) as [He|]; [|apply Still].
        assert (EC : charged s' (sensitivity_of s t) Qs e = charged s (sensitivity_of s t) Qs e).
        { unfold charged, rate_or_0, rate. rewrite <- HB. reflexivity. }
        assert (EM : may_ask s' (sensitivity_of s t) Qs e = may_ask s (sensitivity_of s t) Qs e).
        { unfold may_ask, rate, has_delta. rewrite <- HB. reflexivity. }
        rewrite EC, EM. destruct (may_ask s (sensitivity_of s t) Qs e) eqn:Hm; [|apply Still].
        destruct (within (charged s (sensitivity_of s t) Qs e)) eqn:Hw; [|apply Still].
        cbn [fst snd]. apply query_advances; auto.
      - rewrite <- HB. apply Still.
      - rewrite <- HB. apply Still.
      - destruct (Rlt_dec 0 e) as [He|]; [|apply Still].
        assert (EM : may_ask s' (sensitivity_of s t) Qs e = may_ask s (sensitivity_of s t) Qs e).
        { unfold may_ask, rate, has_delta. rewrite <- HB. reflexivity. }
        rewrite EM. destruct (may_ask s (sensitivity_of s t) Qs e); [|apply Still].
        unfold rate_or_0, rate. rewrite <- HB. apply Still.
    Qed.

    (** ** All steps *)

    (** The law of the traces whose every answer is from a core. *)
    Fixpoint core_probability (m : nat) (p : program client) (s s' : State) (t : list Observation) : R :=
      match m, t with
      | O, [] => 1
      | Datatypes.S m, o :: t => core_chances (reply p s) (reply p s') o * core_probability m (told client p o) (next p s) (next p s') t
      | _, _ => 0
      end.

    Lemma core_probability_distribution m : forall p s s', distribution (core_probability m p s s').
    Proof.
      induction m as [|m IH]; intros p s s'.
      - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
      - eapply distribution_ext; [|apply (sequence_distribution (observation_dec S) (core_chances (reply p s) (reply p s'))
          (fun o => core_probability m (told client p o) (next p s) (next p s')))].
        + intros []; reflexivity.
        + apply core_chances_distribution, step_runnable.
        + intros o. apply IH.
    Qed.

    Lemma core_probability_length m : forall p s s' t, length t <> m -> core_probability m p s s' t = 0.
    Proof. induction m as [|m IH]; intros p s s' [|o t] H; simpl in *; try lia; auto. rewrite IH by lia. ring. Qed.

    (** The loss along a trace: what the roots have paid. *)
    Definition loss_along (m : nat) (p : program client) (s : State) (d : vector) (t : list Observation) : R :=
      if Nat.eqb (length t) m then paid b (reached p s t) d - psi b s d else 0.

    Theorem cores_alike m : forall p s s' d dk, paired s s' d dk ->
      alike n (loss_along m p s d) (core_probability m p s s') (core_probability m p s' s) /\
      alike n (loss_along m p s d) (core_probability m p s' s) (core_probability m p s s').
    Proof.
      induction m as [|m IH]; intros p s s' d dk H.
      - assert (C : alike n (loss_along 0 p s d) ended ended).
        { intros o Ho. pose proof (looks_proper _ _ Ho) as Hp. apply (close_weaken o Hp (fun _ => 0)); try apply ended_distribution.
          - intros [|x t]; unfold loss_along; simpl; [|lra]. pose proof (psi_paid b s d (paired_sound _ _ _ _ H)). lra.
          - apply (close_same o Hp), ended_distribution. }
        split; intros o Ho; specialize (C o Ho); revert C; apply (close_ext o (looks_proper _ _ Ho)); auto; intros []; reflexivity.
      - destruct (step_advances s s' d dk (does client p) H) as (d1 & dk1 & H1 & E1 & _ & _ & L1 & L2 & _).
        fold (reply p s) (reply p s') (next p s) (next p s') in *.
        assert (Go : forall x y, alike n (fun _ => psi b (next p s) d1 - psi b s d) (core_chances (reply p x) (reply p y)) (core_chances (reply p y) (reply p x)) ->
          (forall o, alike n (loss_along m (told client p o) (next p s) d1) (core_probability m (told client p o) (next p x) (next p y))
            (core_probability m (told client p o) (next p y) (next p x))) ->
          alike n (loss_along (Datatypes.S m) p s d) (core_probability (Datatypes.S m) p x y) (core_probability (Datatypes.S m) p y x)).
        { intros x y L I o Ho. pose proof (looks_proper _ _ Ho) as Hp.
          pose proof (close_sequence o Hp (observation_dec S) (fun _ => psi b (next p s) d1 - psi b s d)
            (fun z => loss_along m (told client p z) (next p s) d1)
            (core_chances (reply p x) (reply p y)) (core_chances (reply p y) (reply p x))
            (fun z => core_probability m (told client p z) (next p x) (next p y)) (fun z => core_probability m (told client p z) (next p y) (next p x))) as C.
          specialize (C (nonnegative _ (core_chances_distribution _ (reply p y) (step_runnable x (does client p))))
            (nonnegative _ (core_chances_distribution _ (reply p x) (step_runnable y (does client p))))
            (fun z => nonnegative _ (core_probability_distribution m _ _ _)) (fun z => nonnegative _ (core_probability_distribution m _ _ _))
            (L o Ho) (fun z => I z o Ho)).
          assert (E : forall w, paid b w d1 = paid b w d).
          { intros w. unfold paid. apply dot_ext. intros; split; auto. }
          destruct o as [|a].
          + intros t. specialize (C t). destruct t as [|z t]; simpl in C |- *; [lra|]. unfold loss_along in *. cbn [length Nat.eqb reached] in *.
            destruct (Nat.eqb_spec (length t) m) as [Hl|Hl].
            * rewrite E in C. replace (paid b _ d - psi b s d) with (psi b (next p s) d1 - psi b s d +
                (paid b (reached (told client p z) (next p s) t) d - psi b (next p s) d1)) by ring. exact C.
            * rewrite !core_probability_length by exact Hl. lra.
          + destruct C as [C0 C]. split; [intros [|z t]; [auto|apply (C0 (z :: t))]|]. intros l N. eapply Rle_trans; [|apply (C l N)].
            apply sum_le. intros [|z t] _; [apply Rle_refl|]. unfold loss_along. cbn [length Nat.eqb sequence core_probability reached].
            destruct (Nat.eqb_spec (length t) m) as [Hl|Hl].
            * rewrite E. apply Req_le. do 4 f_equal. ring.
            * rewrite !core_probability_length, !Rmult_0_r, moment_zero by (exact Hl || exact Hp). lra. }
        split; apply Go; auto; intros o; apply (IH _ _ _ d1 dk1 H1).
    Qed.

    (** What is set aside in δ, and that no more was paid. *)
    Definition keys_total (dk : vector) : R := match delta_book with Some c => dot roots (budget c) dk | None => 0 end.
    Definition keys_within (s : State) : Prop := match delta_book with
      | Some c => forall x, (x < roots)%nat -> own c x = true -> counters (book s c) x <= budget c x
      | None => True
      end.

    Lemma keys_step p s : keys_within s -> keys_within (next p s).
    Proof.
      unfold keys_within. destruct delta_book as [c|]; auto. intros H. destruct (step_pays c s (does client p)) as [K|K]; auto.
      intros x Hx Ho. unfold next. rewrite K. auto.
    Qed.

    Lemma keys_psi_total s s' d dk : paired s s' d dk -> keys_within s -> keys_psi s dk <= keys_total dk.
    Proof.
      intros [_ _ B] W. unfold beside, keys_psi, keys_total, keys_within in *. destruct delta_book as [c|]; [|lra].
      destruct B as (_ & H & _ & _). eapply Rle_trans; [apply psi_paid, H|]. unfold paid.
      assert (K : forall m, (m <= roots)%nat -> dot m (counters (book s c)) dk <= dot m (budget c) dk); [|apply K; lia].
      induction m as [|m IH]; intros Hm; simpl; [lra|]. specialize (IH ltac:(lia)). apply Rplus_le_compat; [exact IH|].
      destruct (own c m) eqn:Ho.
      - apply Rmult_le_compat_r; [|apply W; [lia|exact Ho]]. destruct (sound_well _ _ _ H). auto.
      - destruct (sound_about _ _ _ H) as [A _]. rewrite (A m) by (assumption || lia). lra.
    Qed.

    Theorem cores_below m : forall p s s' d dk t, paired s s' d dk -> keys_within s ->
      (1 - (keys_total dk - keys_psi s dk)) * core_probability m p s s' t <= probability m p s t /\
      (1 - (keys_total dk - keys_psi s dk)) * core_probability m p s' s t <= probability m p s' t.
    Proof.
      induction m as [|m IH]; intros p s s' d dk t H W; pose proof (keys_psi_total s s' d dk H W) as Q.
      - destruct t; simpl; lra.
      - destruct t as [|o t]; [simpl; lra|].
        destruct (step_advances s s' d dk (does client p) H) as (d1 & dk1 & H1 & _ & E1 & G & _ & _ & B1 & B2).
        fold (reply p s) (reply p s') (next p s) (next p s') in *. cbn [core_probability probability].
        pose proof (keys_step p s W) as W1. pose proof (keys_psi_total _ _ _ _ H1 W1) as Q1.
        assert (E : keys_total dk1 = keys_total dk).
        { unfold keys_total. destruct delta_book; auto. apply dot_ext. intros; split; auto. }
        destruct (IH (told client p o) (next p s) (next p s') d1 dk1 t H1 W1) as [C1 C2]. rewrite E in *.
        replace (keys_total dk - keys_psi s dk) with ((keys_psi (next p s) dk1 - keys_psi s dk) + (keys_total dk - keys_psi (next p s) dk1)) by ring.
        split; apply parts_multiply; auto; try lra; try apply probability_nonneg; try apply core_probability_distribution;
          try (apply core_chances_distribution, step_runnable); apply chances_distribution, step_runnable.
    Qed.
  End TwoRuns.

  (** ** The theorem *)

  Variable empty : table.
  Hypothesis budget_nonneg : forall b x, (x < roots)%nat -> 0 <= budget b x.

  Definition init (D : nat -> table) : State :=
    {| environment := fun t => if Nat.ltb t roots then (D t, unit t) else (empty, fun _ => 0);
       book := fun _ => opening roots |}.

  Notation root_distances := (root_distances S).

  Lemma init_sound b D D' : about b (root_distances D D') -> sound b (init D) (root_distances D D').
  Proof.
    intros A. split; auto.
    apply (rebudget S roots (fun _ => 0)); [apply (General.init_sound S roots (fun _ => 0) empty ltac:(intros; lra) D D')|].
    intros. simpl. lra.
  Qed.

  Lemma init_similar b D D' : similar b (init D) (init D') (root_distances D D').
  Proof. split; [reflexivity|]. apply General.init_similar. Qed.

  Lemma init_psi b D d : psi b (init D) d = 0.
  Proof. unfold psi, Psi, potential. simpl. rewrite dot_zero. ring. Qed.

  (** What two databases must be like, for a book in ε or ρ and one in δ. *)
  Definition within_reach (b : nat) (delta_book : option nat) (d : vector) : Prop :=
    about b d /\ match delta_book with
      | Some c => kind c = Keys /\ about c d
      | None => forall x, (x < roots)%nat -> keys_of x <> None -> d x = 0
      end.

  Lemma init_paired b delta_book D D' : within_reach b delta_book (root_distances D D') ->
    paired b delta_book (init D) (init D') (root_distances D D') (root_distances D D').
  Proof.
    intros [A B]. split; [apply init_sound, A|apply init_similar|]. unfold beside. destruct delta_book as [c|]; [|exact B].
    destruct B as [Hc B]. split; [exact Hc|]. split; [apply init_sound, B|]. split; [apply init_similar|reflexivity].
  Qed.

  (** After the event: but for the δ, the traces are as close as what the book's
      roots paid. *)
  Theorem books_nearly b n delta_book m p D D' : kind b = Loss n -> (exists x, (x < roots)%nat /\ book_of x = b) ->
    within_reach b delta_book (root_distances D D') ->
    nearly n (fun t => if Nat.eqb (length t) m then paid b (reached p (init D) t) (root_distances D D') else 0)
      (keys_total delta_book (root_distances D D')) (probability m p (init D)) (probability m p (init D')).
  Proof.
    intros Hk Hb A. pose proof (init_paired b delta_book D D' A) as H.
    assert (W : keys_within delta_book (init D)).
    { unfold keys_within. destruct delta_book; [|exact I]. intros x Hx _. apply budget_nonneg, Hx. }
    assert (Z : keys_psi delta_book (init D) (root_distances D D') = 0) by (unfold keys_psi; destruct delta_book; [apply init_psi|reflexivity]).
    destruct (cores_alike b n delta_book Hk Hb m p _ _ _ _ H) as [C1 C2].
    pose proof (fun t => cores_below b n delta_book Hk Hb m p _ _ _ _ t H W) as B. rewrite Z in B.
    exists (core_probability m p (init D) (init D')), (core_probability m p (init D') (init D)).
    assert (E : forall t, loss_along b m p (init D) (root_distances D D') t =
      if Nat.eqb (length t) m then paid b (reached p (init D) t) (root_distances D D') else 0).
    { intros t. unfold loss_along. rewrite init_psi. destruct (Nat.eqb (length t) m); ring. }
    split; [apply core_probability_distribution|]. split; [apply core_probability_distribution|].
    split; [intros t; rewrite <- (Rminus_0_r (keys_total _ _)); apply B|]. split; [intros t; rewrite <- (Rminus_0_r (keys_total _ _)); apply B|].
    split; intros o Ho; [specialize (C1 o Ho); revert C1|specialize (C2 o Ho); revert C2];
      apply (close_ext o (looks_proper _ _ Ho)); auto.
  Qed.

  (** Where no root with a δ differs, they are close. *)
  Theorem books_alike b n m p D D' : kind b = Loss n -> (exists x, (x < roots)%nat /\ book_of x = b) ->
    within_reach b None (root_distances D D') ->
    alike n (fun t => if Nat.eqb (length t) m then paid b (reached p (init D) t) (root_distances D D') else 0)
      (probability m p (init D)) (probability m p (init D')).
  Proof.
    intros Hk Hb A. apply (nearly_exact (list_eq_dec (observation_dec S))); try apply traces_sum_to_one.
    apply (books_nearly b n None m p D D' Hk Hb A).
  Qed.

  (** What every reachable state is within. *)
  Lemma reached_within b t : forall p s, (forall x, (x < roots)%nat -> own b x = true -> counters (book s b) x <= budget b x) ->
    forall x, (x < roots)%nat -> own b x = true -> counters (book (reached p s t) b) x <= budget b x.
  Proof.
    induction t as [|o t IH]; intros p s H; [exact H|]. simpl. apply IH. intros x Hx Ho.
    destruct (step_pays b s (does client p)) as [K|K]; [apply K; assumption|]. unfold next. rewrite K. auto.
  Qed.

  Lemma paid_within b p t D D' : about b (root_distances D D') ->
    paid b (reached p (init D) t) (root_distances D D') <= dot roots (budget b) (root_distances D D').
  Proof.
    intros A. unfold paid.
    assert (K : forall m, (m <= roots)%nat -> dot m (counters (book (reached p (init D) t) b)) (root_distances D D') <=
      dot m (budget b) (root_distances D D')); [|apply K; lia].
    induction m as [|m IH]; intros Hm; simpl; [lra|]. specialize (IH ltac:(lia)). apply Rplus_le_compat; [exact IH|].
    destruct (own b m) eqn:Ho'.
    - apply Rmult_le_compat_r; [apply pos_INR|]. apply reached_within; auto.
    - destruct A as [A _]. rewrite (A m) by (assumption || lia). lra.
  Qed.

  Lemma budget_total b D D' : 0 <= dot roots (budget b) (root_distances D D').
  Proof.
    assert (K : forall m, (m <= roots)%nat -> 0 <= dot m (budget b) (root_distances D D')); [|apply K; lia].
    induction m as [|m IH]; intros Hm; simpl; [lra|]. specialize (IH ltac:(lia)).
    pose proof (Rmult_le_pos _ _ (budget_nonneg b m ltac:(lia)) (pos_INR (distance (D m) (D' m)))). unfold General.root_distances in *. lra.
  Qed.

  (** By the budgets: Σ_x budget(x) * |D(x) ⊖ D'(x)|. *)
  Theorem books_within_nearly b n delta_book m p D D' : kind b = Loss n -> (exists x, (x < roots)%nat /\ book_of x = b) ->
    within_reach b delta_book (root_distances D D') ->
    nearly n (fun _ => dot roots (budget b) (root_distances D D')) (keys_total delta_book (root_distances D D'))
      (probability m p (init D)) (probability m p (init D')).
  Proof.
    intros Hk Hb A. eapply nearly_weaken; [|apply Rle_refl|apply (books_nearly b n delta_book m p D D' Hk Hb A)].
    intros t. cbv beta. destruct (Nat.eqb (length t) m); [apply paid_within, A|apply budget_total].
  Qed.

  Theorem books_within b n m p D D' : kind b = Loss n -> (exists x, (x < roots)%nat /\ book_of x = b) ->
    within_reach b None (root_distances D D') ->
    alike n (fun _ => dot roots (budget b) (root_distances D D')) (probability m p (init D)) (probability m p (init D')).
  Proof.
    intros Hk Hb A. apply (nearly_exact (list_eq_dec (observation_dec S))); try apply traces_sum_to_one.
    apply (books_within_nearly b n None m p D D' Hk Hb A).
  Qed.
End Books.
