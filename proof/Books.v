(** * Books

    [model/books.py] in Coq: roots of every notion under the one charge.  A book is
    a set of accounts as in [Sources].  The pure roots share one, in ε; each
    concentrated root has one of its own, in ρ.  A query of a table t is charged
    in every book, at a rate of that book's own: κ per unit of distance, where
    κ may depend on the scale of t there, that is, on how many records of t one
    record of the book's roots can change.  Of what is in a book only its own
    roots are held against budgets; a query is answered if all of them are within
    theirs.

    The rates may be anything that keeps the promise of [Rates].  For each book,
    over two databases that differ in its roots alone, the traces of every
    adaptive program are then as close, in the book's notion, as what its roots
    have paid: [books_alike], after the event; [books_within], by the budgets.  One
    proof for both notions, and for any κ: a step raises Ψ by κ * v·d, which is
    never less than its loss. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.Scale Fpinq.Closeness Fpinq.General.
Import ListNotations.
Open Scope R_scope.

(** ** What a query costs *)

(** κ of a mechanism at e in a book of a notion, on a scale; [None] if it may not
    be asked there.  A concentrated book speaks of one record, so that no table
    differs by more than its scale. *)
Record Rates (S : Tables) := {
  kappa : notion -> mechanism S -> R -> R -> option R;
  kappa_nonneg : forall n q e s k, 0 < e -> 0 <= s -> kappa n q e s = Some k -> 0 <= k;
  kappa_covers : forall n q e s k T U, 0 < e -> kappa n q e s = Some k ->
    (n = Concentrated -> INR (distance S T U) <= s) ->
    alike n (fun _ => k * INR (distance S T U)) (mass S q e T) (mass S q e U) }.

Section Books.
  Variable S : Tables.
  Variable rates : Rates S.
  Variables (roots : nat) (budget : vector).
  (** The book that a root is in, and the notion of a book. *)
  Variables (book_of : nat -> nat) (kind : nat -> notion).

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

  Definition own (b x : nat) : bool := Nat.eqb (book_of x) b.

  (** How many records of a table one record of the book's roots can change. *)
  Definition reach (b : nat) (A : Accounts) (v : vector) : R :=
    largest (fun x => if own b x then price (fresh A) v 1 x else 0) 0 roots 0.

  (** Queries side by side cost what the dearest does. *)
  Fixpoint dearest (n : notion) (Qs : list (mechanism S)) (e s : R) : option R :=
    match Qs with
    | [] => Some 0
    | q :: Qs => match kappa S rates n q e s, dearest n Qs e s with Some k, Some m => Some (Rmax k m) | _, _ => None end
    end.

  (** What a book is charged per unit of distance: nothing where the table is not
      in reach of its roots. *)
  Definition rate (s : State) (b : nat) (v : vector) (Qs : list (mechanism S)) (e : R) : option R :=
    let r := reach b (book s b) v in if Req_EM_T r 0 then Some 0 else dearest (kind b) Qs e r.
  Definition rate_or_0 s b v Qs e : R := match rate s b v Qs e with Some k => k | None => 0 end.

  Definition may_ask (s : State) v Qs e : bool :=
    forallb (fun x => match rate s (book_of x) v Qs e with Some _ => true | None => false end) (seq 0 roots).

  Definition charged (s : State) v Qs e (b : nat) : Accounts := charge (book s b) v (rate_or_0 s b v Qs e).

  Definition within (books : nat -> Accounts) : bool :=
    forallb (fun x => if Rle_dec (counters (books (book_of x)) x) (budget x) then true else false) (seq 0 roots).

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
    | AskBudget => (Shows S (Budget S (map (fun x => budget x - counters (book s (book_of x)) x) (seq 0 roots))), s)
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

  Lemma parallel_alike_from n f e s T U : 0 < e -> 0 <= s -> forall Qs i k, dearest n Qs e s = Some k ->
    let away := INR (sum_from i (length Qs) (fun j => distance (part S f j T) (part S f j U))) in
    (n = Concentrated -> away <= s) -> alike n (fun _ => k * away) (parallel S f e T i Qs) (parallel S f e U i Qs).
  Proof.
    intros He Hs. induction Qs as [|q Qs IH]; intros i k E away Ha o Ho; pose proof (looks_proper n o Ho) as Hp.
    - injection E as <-. unfold away. simpl. rewrite Rmult_0_l.
      apply (close_ext o Hp (fun _ => 0) _ ended ended); try (intros []; reflexivity).
      apply (close_same o Hp), ended_distribution.
    - simpl in E. destruct (kappa S rates n q e s) as [k1|] eqn:K1; [|discriminate].
      destruct (dearest n Qs e s) as [k2|] eqn:K2; [|discriminate]. injection E as <-.
      unfold away in *. clear away. cbn [length sum_from] in *. rewrite plus_INR in *.
      set (d := distance (part S f i T) (part S f i U)) in *.
      set (later := INR (sum_from _ _ _)) in *. assert (0 <= INR d) by apply pos_INR. assert (0 <= later) by apply pos_INR.
      pose proof (kappa_covers S rates n q e s k1 (part S f i T) (part S f i U) He K1) as C. fold d in C.
      specialize (C ltac:(intros Hn; specialize (Ha Hn); lra) o Ho).
      specialize (IH (Datatypes.S i) k2 eq_refl). cbv zeta in IH. fold later in IH.
      specialize (IH ltac:(intros Hn; specialize (Ha Hn); lra) o Ho).
      pose proof (kappa_nonneg S rates _ _ _ _ _ He Hs K1) as P1. pose proof (dearest_nonneg _ _ _ _ _ He Hs K2) as P2.
      apply (close_weaken o Hp (fun t => match t with [] => 0 | x :: t => k1 * INR d + k2 * later end)).
      + intros. apply parallel_nonneg, He.
      + intros. apply parallel_nonneg, He.
      + assert (k1 * INR d <= Rmax k1 k2 * INR d) by (apply Rmult_le_compat_r; [assumption|apply Rmax_l]).
        assert (k2 * later <= Rmax k1 k2 * later) by (apply Rmult_le_compat_r; [assumption|apply Rmax_r]).
        pose proof (Rmult_le_pos _ _ P1 H). pose proof (Rmult_le_pos _ _ P2 H0). intros []; lra.
      + eapply (close_ext o Hp); [..|apply (close_sequence o Hp (answer_dec S) (fun _ => k1 * INR d) (fun _ _ => k2 * later)
          (mass S q e (part S f i T)) (mass S q e (part S f i U)) (fun _ => parallel S f e T (Datatypes.S i) Qs)
          (fun _ => parallel S f e U (Datatypes.S i) Qs))]; try (intros []; reflexivity); auto.
        * apply mass_distribution, He.
        * apply mass_distribution, He.
        * intros. apply parallel_nonneg, He.
        * intros. apply parallel_nonneg, He.
  Qed.

  Lemma parallel_alike n f e s T U Qs k : 0 < e -> 0 <= s -> dearest n Qs e s = Some k ->
    (n = Concentrated -> INR (distance T U) <= s) ->
    alike n (fun _ => k * INR (distance T U)) (parallel S f e T 0 Qs) (parallel S f e U 0 Qs).
  Proof.
    intros He Hs E Hd o Ho. pose proof (part_stable S f (length Qs) T U) as L. apply le_INR in L.
    apply (close_weaken o (looks_proper n o Ho) (fun _ => k * INR (sum_from 0 (length Qs)
      (fun j => distance (part S f j T) (part S f j U))))); [..|apply (parallel_alike_from n f e s T U He Hs Qs 0 k E); auto].
    - intros. apply parallel_nonneg, He.
    - intros. apply parallel_nonneg, He.
    - intros _. apply Rmult_le_compat_l; [apply (dearest_nonneg _ _ _ _ _ He Hs E)|exact L].
    - intros Hn. specialize (Hd Hn). lra.
  Qed.

  Lemma parallel_same f e T U : distance T U = 0%nat -> forall Qs i vs, parallel S f e T i Qs vs = parallel S f e U i Qs vs.
  Proof.
    intros E. assert (P : forall i, distance (part S f i T) (part S f i U) = 0%nat).
    { intros i. pose proof (part_stable S f (Datatypes.S i) T U) as L. rewrite E in L.
      assert (K : forall n j g, (g (j + n) <= sum_from j (Datatypes.S n) g)%nat).
      { induction n as [|n IH]; intros j g; [simpl; rewrite Nat.add_0_r; lia|].
        specialize (IH (Datatypes.S j) g). replace (Datatypes.S j + n)%nat with (j + Datatypes.S n)%nat in IH by lia.
        cbn [sum_from] in *. lia. }
      specialize (K i 0%nat (fun i => distance (part S f i T) (part S f i U))). change (0 + i)%nat with i in K. cbv beta in K. lia. }
    induction Qs as [|q Qs IH]; intros i [|v vs]; simpl; auto. rewrite (mass_same S q e _ _ v (P i)), IH. reflexivity.
  Qed.

  (** ** The invariant of one book *)

  Section OneBook.
    Variable b : nat.

    (** What a book speaks about: databases that differ in its own roots; by one
        record in all, if it is concentrated. *)
    Definition about (d : vector) : Prop :=
      (forall x, (x < roots)%nat -> own b x = false -> d x = 0) /\
      (kind b = Concentrated -> dot roots (fun _ => 1) d <= 1).

    Record sound (s : State) (d : vector) : Prop := {
      sound_sources : forall c, sources (book s c) = sources (book s 0);
      sound_well : well S roots (view s b) d;
      sound_within : forall x, (x < roots)%nat -> own b x = true -> counters (book s b) x <= budget x;
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

    (** A table is within its scale. *)
    Lemma reach_covers s d t : sound s d ->
      dot (sources (book s b)) (sensitivity_of s t) d <=
        reach b (book s b) (sensitivity_of s t) * dot roots (fun _ => 1) d.
    Proof.
      intros [_ [] _ [A _]]. simpl in *. set (v := sensitivity_of s t) in *.
      eapply Rle_trans; [apply (price_covers roots); eassumption|].
      set (f := fun x => if own b x then price (fresh (book s b)) v 1 x else 0).
      rewrite (dot_ext roots (price (fresh (book s b)) v 1) (price (fresh (book s b)) v 1) d
        (fun x => if own b x then d x else 0)).
      2:{ intros x Hx. split; auto. destruct (own b x) eqn:Ho; auto. }
      assert (E : dot roots (price (fresh (book s b)) v 1) (fun x => if own b x then d x else 0) = dot roots f d).
      { clear. induction roots as [|m IH]; simpl; auto. rewrite IH. unfold f. destruct (own b m); ring. }
      rewrite E. apply total_distance; auto. intros x Hx. apply (largest_bounds f 0 roots 0). exact Hx.
    Qed.

    Lemma distances_nonneg n d : (forall x, 0 <= d x) -> 0 <= dot n (fun _ => 1) d.
    Proof. intros H. induction n as [|n IH]; simpl; [lra|]. specialize (H n). lra. Qed.

    Lemma reach_nonneg A v : 0 <= reach b A v.
    Proof. apply (largest_bounds _ 0 roots 0). Qed.

    (** ** One step *)

    Definition advances (s s' : State) (d : vector) (r r' : Reply S) (u u' : State) : Prop :=
      exists d', sound u d' /\ similar u u' d' /\ (forall x, (x < roots)%nat -> d' x = d x) /\
        alike (kind b) (fun _ => psi u d' - psi s d) (chances S r) (chances S r').

    Lemma alike_shown r o : r = 0 -> alike (kind b) (fun _ => r) (chances S (Shows S o)) (chances S (Shows S o)).
    Proof. intros -> q Hq. apply (close_same q (looks_proper _ _ Hq)), certain_distribution. Qed.

    Lemma advances_shown s s' d o : sound s d -> similar s s' d -> advances s s' d (Shows S o) (Shows S o) s s'.
    Proof. intros H K. exists d. repeat (split; auto); try apply K. apply alike_shown. ring. Qed.

    (** Assignments and partitions are as in the general semantics, in each book. *)
    Lemma advances_kept s s' d r r' u u' : sound s d -> similar s s' d ->
      keeps S roots (counters (book s b)) (view s b) (view s' b) d r r' (view u b) (view u' b) ->
      (forall c, sources (book u c) = sources (book u 0)) ->
      (forall x, counters (book u b) x = counters (book s b) x) -> book u = book u' -> advances s s' d r r' u u'.
    Proof.
      intros H K (d' & Hu & Ku & E & P & o & -> & ->) Hc Hx Hb. exists d'. split; [|split; [|split; [exact E|]]].
      - destruct H. split; auto.
        + apply (rebudget S roots (counters (book s b))); auto. intros. apply Rle_refl.
        + intros x ? ?. rewrite Hx. auto.
        + apply (about_ext d); auto.
      - split; [exact Hb|exact Ku].
      - apply alike_shown. unfold psi. change (General.psi S (view u b) d' - General.psi S (view s b) d = 0). rewrite P. ring.
    Qed.

    Lemma assign_advances s s' d t F ts : sound s d -> similar s s' d ->
      advances s s' d (fst (step s (Assign t F ts))) (fst (step s' (Assign t F ts)))
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
      - apply (advances_kept s s' d); auto. simpl. intros. apply H.
      - unfold view in G. rewrite <- HB in G. apply (advances_kept s s' d); auto. intros. apply H.
    Qed.

    Lemma partition_advances s s' d t f k dest : sound s d -> similar s s' d ->
      advances s s' d (fst (step s (Partition_ t f k dest))) (fst (step s' (Partition_ t f k dest)))
        (snd (step s (Partition_ t f k dest))) (snd (step s' (Partition_ t f k dest))).
    Proof.
      intros H K. pose proof K as [HB HK].
      pose proof (partition_keeps S roots (counters (book s b)) (view s b) (view s' b) d t f k dest (sound_well _ _ H) HK) as G.
      cbn [step]. unfold partition in *. cbn [accounts view fst snd] in *. rewrite <- HB in *.
      rewrite (sound_sources _ _ H b) in G. rewrite <- (similar_sensitivity s s' d t K).
      apply (advances_kept s s' d); auto; simpl.
      - unfold view. simpl. change (sensitivity_of s t) with (General.sensitivity_of S (view s b) t). revert G.
        change (General.sensitivity_of S (view s' b) t) with (sensitivity_of s' t).
        rewrite <- (similar_sensitivity s s' d t K). intros G. exact G.
      - intros c. rewrite (sound_sources _ _ H c). reflexivity.
    Qed.

    (** The answers' loss is at most κ times the distance, and Ψ grows by κ * v·d. *)
    Lemma query_advances s s' d t f Qs e : sound s d -> similar s s' d -> 0 < e ->
      rate s b (sensitivity_of s t) Qs e <> None ->
      (forall x, (x < roots)%nat -> own b x = true ->
        counters (charged s (sensitivity_of s t) Qs e b) x <= budget x) ->
      advances s s' d (Measures S (table_of s t) f Qs e) (Measures S (table_of s' t) f Qs e)
        {| environment := environment s; book := charged s (sensitivity_of s t) Qs e |}
        {| environment := environment s'; book := charged s (sensitivity_of s t) Qs e |}.
    Proof.
      intros H K He Hr Hfit. pose proof K as [HB HK]. set (v := sensitivity_of s t) in *.
      pose proof (reach_covers s d t H) as HC. fold v in HC. pose proof (reach_nonneg (book s b) v) as HR.
      unfold charged in *. unfold rate_or_0 in *. set (r := reach b (book s b) v) in *.
      assert (Hd : INR (distance (table_of s t) (table_of s' t)) <= dot (sources (book s b)) v d) by apply HK.
      assert (X : exists k, rate s b v Qs e = Some k /\ 0 <= k /\
        alike (kind b) (fun _ => k * INR (distance (table_of s t) (table_of s' t)))
          (parallel S f e (table_of s t) 0 Qs) (parallel S f e (table_of s' t) 0 Qs)).
      { unfold rate in *. fold r in Hr |- *. destruct (Req_EM_T r 0) as [Z|Z].
        - exists 0. split; [reflexivity|]. split; [lra|]. intros o Ho. rewrite Z, Rmult_0_l in HC.
          assert (D0 : distance (table_of s t) (table_of s' t) = 0%nat).
          { apply INR_eq. pose proof (pos_INR (distance (table_of s t) (table_of s' t))). simpl. lra. }
          rewrite D0. apply (close_ext o (looks_proper _ _ Ho) (fun _ => 0) _ (parallel S f e (table_of s t) 0 Qs)
            (parallel S f e (table_of s t) 0 Qs)); auto.
          + intros. simpl. ring.
          + intros. apply parallel_same, D0.
          + apply (close_same o (looks_proper _ _ Ho)), parallel_distribution, He.
        - destruct (dearest (kind b) Qs e r) as [k|] eqn:E; [|contradiction]. exists k.
          pose proof (dearest_nonneg _ _ _ _ _ He HR E) as Hk. split; [reflexivity|]. split; [exact Hk|].
          apply (parallel_alike _ f e r _ _ Qs k He HR E). intros Hn. destruct (sound_about _ _ H) as [_ A].
          specialize (A Hn). assert (r * dot roots (fun _ => 1) d <= r * 1) by (apply Rmult_le_compat_l; assumption). lra. }
      destruct X as (k & E & Hk & HL). rewrite E in Hfit.
      destruct (charge_moves S roots (counters (charge (book s b) v k)) (view s b) (view s' b) d t k) as (Hu & Ku & EP); auto.
      { apply (rebudget S roots (counters (book s b))); [apply H|]. intros x Hx. destruct (sound_well _ _ H).
        apply (charge_grows roots); auto. apply sound_nonneg. }
      { intros. apply Rle_refl. }
      exists d. split; [|split; [|split; [auto|]]].
      - split; simpl.
        + intros c. destruct H. assert (Y : forall A k, sources (charge A v k) = sources A).
          { intros A k'. unfold charge. destruct (settle _ _). reflexivity. }
          rewrite !Y. apply sound_sources0.
        + unfold view. simpl. rewrite E. exact Hu.
        + rewrite E. exact Hfit.
        + apply H.
      - split; [reflexivity|]. unfold view. simpl. rewrite E. exact Ku.
      - intros o Ho. unfold psi. simpl. rewrite E.
        change (Psi (charge (book s b) v k) d) with
          (General.psi S {| General.environment := environment s; accounts := charge (book s b) v k |} d).
        change {| General.environment := environment s; accounts := charge (book s b) v k |} with
          {| General.environment := General.environment S (view s b);
             accounts := charge (accounts S (view s b)) (General.sensitivity_of S (view s b) t) k |}.
        rewrite EP. change (General.psi S (view s b) d) with (Psi (book s b) d).
        change (dot (sources (accounts S (view s b))) (General.sensitivity_of S (view s b) t) d) with
          (dot (sources (book s b)) v d).
        pose proof (looks_proper _ _ Ho) as Hp. specialize (HL o Ho).
        apply (close_weaken o Hp (fun _ => k * INR (distance (table_of s t) (table_of s' t)))).
        + apply (chances_distribution S (Measures S (table_of s t) f Qs e)), He.
        + apply (chances_distribution S (Measures S (table_of s' t) f Qs e)), He.
        + intros _. replace (Psi (book s b) d + k * dot (sources (book s b)) v d - Psi (book s b) d) with
            (k * dot (sources (book s b)) v d) by ring. apply Rmult_le_compat_l; assumption.
        + pose proof (close_rename o Hp (Answers S) (fun o => match o with Answers _ vs => Some vs | _ => None end) _ _ _
            ltac:(intros o' vs; destruct o'; intros Y; congruence) HL) as C.
          revert C. apply (close_ext o Hp); [reflexivity|..]; intros []; reflexivity.
    Qed.

    Lemma book_below x : (x < roots)%nat -> In x (seq 0 roots).
    Proof. intros. apply in_seq. lia. Qed.

    Hypothesis b_used : exists x, (x < roots)%nat /\ own b x = true.

    Lemma step_advances s s' d a : sound s d -> similar s s' d ->
      advances s s' d (fst (step s a)) (fst (step s' a)) (snd (step s a)) (snd (step s' a)).
    Proof.
      intros H K. pose proof K as [HB HK].
      destruct a; [|apply assign_advances; assumption|apply partition_advances; assumption|..]; cbn [step];
        rewrite <- ?(similar_sensitivity s s' d t K).
      - apply advances_shown; assumption.
      - destruct (Rlt_dec 0 e) as [He|]; [|apply advances_shown; assumption].
        assert (EC : charged s' (sensitivity_of s t) Qs e = charged s (sensitivity_of s t) Qs e).
        { unfold charged, rate_or_0, rate. rewrite <- HB. reflexivity. }
        assert (EM : may_ask s' (sensitivity_of s t) Qs e = may_ask s (sensitivity_of s t) Qs e).
        { unfold may_ask, rate. rewrite <- HB. reflexivity. }
        rewrite EC, EM. destruct (may_ask s (sensitivity_of s t) Qs e) eqn:Hm; [|apply advances_shown; assumption].
        destruct (within (charged s (sensitivity_of s t) Qs e)) eqn:Hw; [|apply advances_shown; assumption].
        cbn [fst snd]. apply query_advances; auto.
        + destruct b_used as (x & Hx & Ho). unfold may_ask in Hm. rewrite forallb_forall in Hm. specialize (Hm x (book_below x Hx)).
          apply Nat.eqb_eq in Ho. rewrite Ho in Hm. intros E. rewrite E in Hm. discriminate.
        + intros x Hx Ho. unfold within in Hw. rewrite forallb_forall in Hw. specialize (Hw x (book_below x Hx)).
          apply Nat.eqb_eq in Ho. rewrite Ho in Hw. destruct (Rle_dec _ _); [assumption|discriminate].
      - rewrite <- HB. apply advances_shown; assumption.
      - rewrite <- HB. apply advances_shown; assumption.
      - destruct (Rlt_dec 0 e) as [He|]; [|apply advances_shown; assumption].
        assert (EM : may_ask s' (sensitivity_of s t) Qs e = may_ask s (sensitivity_of s t) Qs e).
        { unfold may_ask, rate. rewrite <- HB. reflexivity. }
        rewrite EM. destruct (may_ask s (sensitivity_of s t) Qs e); [|apply advances_shown; assumption].
        unfold rate_or_0, rate. rewrite <- HB. apply advances_shown; assumption.
    Qed.

    (** ** All steps *)

    (** What the roots have paid in the book, for so many records of each. *)
    Definition paid (s : State) (d : vector) : R := dot roots (counters (book s b)) d.

    Lemma psi_paid s d : sound s d -> psi s d <= paid s d.
    Proof. intros [_ [] _ _]. unfold psi, Psi, paid. apply (potential_le_roots roots); assumption. Qed.

    Theorem trace_alike n : forall p s s' d, sound s d -> similar s s' d ->
      alike (kind b) (fun t => if Nat.eqb (length t) n then paid (reached p s t) d - psi s d else 0)
        (probability n p s) (probability n p s').
    Proof.
      induction n as [|n IH]; intros p s s' d H K o Ho; pose proof (looks_proper _ _ Ho) as Hp.
      - apply (close_weaken o Hp (fun _ => 0)); [apply probability_nonneg|apply probability_nonneg|..].
        + intros [|x t]; simpl; [|lra]. pose proof (psi_paid s d H). lra.
        + apply (close_ext o Hp (fun _ => 0) _ ended ended); try (intros []; reflexivity).
          apply (close_same o Hp), ended_distribution.
      - destruct (step_advances s s' d (does client p) H K) as (d1 & H1 & K1 & D1 & L1).
        fold (reply p s) (reply p s') (next p s) (next p s') in *.
        pose proof (close_sequence o Hp (observation_dec S) (fun _ => psi (next p s) d1 - psi s d)
          (fun x t => if Nat.eqb (length t) n then paid (reached (told client p x) (next p s) t) d1 - psi (next p s) d1 else 0)
          (chances S (reply p s)) (chances S (reply p s'))
          (fun x => probability n (told client p x) (next p s)) (fun x => probability n (told client p x) (next p s'))) as C.
        specialize (C (fun x => nonnegative _ (chances_distribution S _ (step_runnable s (does client p))) x)
          (fun x => nonnegative _ (chances_distribution S _ (step_runnable s' (does client p))) x)
          (fun x t => probability_nonneg n _ _ t) (fun x t => probability_nonneg n _ _ t) (L1 o Ho)
          (fun x => IH (told client p x) _ _ d1 H1 K1 o Ho)).
        assert (E : forall u, paid u d1 = paid u d).
        { intros u. unfold paid. apply dot_ext. intros; split; auto. }
        destruct o as [|a].
        + intros t. specialize (C t). destruct t as [|x t]; simpl in C |- *; [lra|].
          destruct (Nat.eqb_spec (length t) n) as [Hl|Hl].
          * rewrite E in C. replace (paid _ d - psi s d) with (psi (next p s) d1 - psi s d +
              (paid (reached (told client p x) (next p s) t) d - psi (next p s) d1)) by ring. exact C.
          * assert (Z : forall q u, probability n q u t = 0).
            { clear - Hl. revert t Hl. induction n as [|n IHn]; intros [|y t] Hl q u; simpl in *; try lia; auto.
              rewrite IHn by lia. ring. }
            rewrite !Z. lra.
        + destruct C as [C0 C]. split; [intros [|x t]; [auto|apply (C0 (x :: t))]|]. intros l N. eapply Rle_trans; [|apply (C l N)].
          apply sum_le. intros [|x t] _; [apply Rle_refl|]. cbn [length Nat.eqb sequence probability reached].
          destruct (Nat.eqb_spec (length t) n) as [Hl|Hl].
          * rewrite E. apply Req_le. do 4 f_equal. ring.
          * assert (Z : forall q u, probability n q u t = 0).
            { clear - Hl. revert t Hl. induction n as [|n IHn]; intros [|y t] Hl q u; simpl in *; try lia; auto.
              rewrite IHn by lia. ring. }
            rewrite !Z, !Rmult_0_r, moment_zero by exact Hp. lra.
    Qed.
  End OneBook.

  (** ** The theorem *)

  Variable empty : table.
  Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.

  Definition init (D : nat -> table) : State :=
    {| environment := fun t => if Nat.ltb t roots then (D t, unit t) else (empty, fun _ => 0);
       book := fun _ => opening roots |}.

  Notation root_distances := (root_distances S).

  Lemma init_sound b D D' : about b (root_distances D D') -> sound b (init D) (root_distances D D').
  Proof.
    intros A. split; auto.
    - apply (rebudget S roots (fun _ => 0)); [apply (General.init_sound S roots (fun _ => 0) empty ltac:(intros; lra) D D')|].
      intros. simpl. lra.
  Qed.

  (** After the event: the traces are as close as what the book's roots paid. *)
  Theorem books_alike b n p D D' : (exists x, (x < roots)%nat /\ own b x = true) -> about b (root_distances D D') ->
    alike (kind b) (fun t => if Nat.eqb (length t) n then paid b (reached p (init D) t) (root_distances D D') else 0)
      (probability n p (init D)) (probability n p (init D')).
  Proof.
    intros Hb A o Ho. pose proof (looks_proper _ _ Ho) as Hp.
    eapply (close_ext o Hp); [|reflexivity|reflexivity|apply (trace_alike b Hb n p (init D) (init D') (root_distances D D'))].
    - intros t. simpl. destruct (Nat.eqb (length t) n); auto.
      assert (Z : psi b (init D) (root_distances D D') = 0); [|rewrite Z; ring].
      unfold psi, Psi, potential. simpl. rewrite dot_zero. ring.
    - apply init_sound, A.
    - split; [reflexivity|]. apply General.init_similar.
    - exact Ho.
  Qed.

  (** What every reachable state is within. *)
  Lemma reached_within b : (exists x, (x < roots)%nat /\ own b x = true) -> forall t p s s' d, sound b s d ->
    similar b s s' d -> forall x, (x < roots)%nat -> own b x = true -> counters (book (reached p s t) b) x <= budget x.
  Proof.
    intros Hb. induction t as [|o t IH]; intros p s s' d H K x Hx Ho; [apply (sound_within _ _ _ H); assumption|]. simpl.
    destruct (step_advances b Hb s s' d (does client p) H K) as (d1 & H1 & K1 & _ & _). apply (IH _ _ _ d1 H1 K1); assumption.
  Qed.

  (** By the budgets: Σ_x budget(x) * |D(x) ⊖ D'(x)|. *)
  Theorem books_within b n p D D' : (exists x, (x < roots)%nat /\ own b x = true) -> about b (root_distances D D') ->
    alike (kind b) (fun _ => dot roots budget (root_distances D D')) (probability n p (init D)) (probability n p (init D')).
  Proof.
    intros Hb A o Ho. apply (close_weaken o (looks_proper _ _ Ho) (fun t => if Nat.eqb (length t) n
      then paid b (reached p (init D) t) (root_distances D D') else 0)); auto using probability_nonneg.
    - intros t. assert (N : 0 <= dot roots budget (root_distances D D')).
      { clear - budget_nonneg. assert (K : forall m, (m <= roots)%nat -> 0 <= dot m budget (root_distances D D')).
        { induction m as [|m IH]; intros Hm; simpl; [lra|]. specialize (IH ltac:(lia)).
          pose proof (Rmult_le_pos _ _ (budget_nonneg m ltac:(lia)) (pos_INR (distance (D m) (D' m)))). unfold General.root_distances in *. lra. }
        apply K. lia. }
      destruct (Nat.eqb (length t) n); [|exact N]. unfold paid.
      assert (K : forall m, (m <= roots)%nat -> dot m (counters (book (reached p (init D) t) b)) (root_distances D D') <=
        dot m budget (root_distances D D')).
      { induction m as [|m IH]; intros Hm; simpl; [lra|]. specialize (IH ltac:(lia)). apply Rplus_le_compat; [exact IH|].
        destruct (own b m) eqn:Ho'.
        - apply Rmult_le_compat_r; [apply pos_INR|].
          apply (reached_within b Hb t p (init D) (init D') (root_distances D D') (init_sound b D D' A)); auto.
          split; [reflexivity|]. apply General.init_similar.
        - destruct A as [A _]. rewrite (A m) by (assumption || lia). lra. }
      apply K. lia.
    - apply (books_alike b n p D D' Hb A o Ho).
  Qed.
End Books.
