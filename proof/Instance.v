(** * Everything together

    Bags over any ordered record type, the registry of transformations,
    partition by listed keys, and any mechanism that is private on neighbouring
    bags, among them [released q] for every query q: they keep every promise of
    [System], so the theorems hold with no hypothesis left. *)

Require Import Reals Lra Lia List Arith ZArith Permutation.
Require Import Fpinq.Bags Fpinq.Stability Fpinq.Plans Fpinq.Probability Fpinq.Mechanisms Fpinq.Private Fpinq.Queries.
Require Fpinq.System Fpinq.Sources Fpinq.Featherweight Fpinq.General Fpinq.Events Fpinq.Sessions.
Export (coercions) Fpinq.System.
Import ListNotations.
Open Scope R_scope.

Section Instance.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** ** Transformations *)

  Definition transformation := {s : shape & arguments (record := record) s}.
  Definition apply (F : transformation) : list table -> table := meaning (projT1 F) (projT2 F).
  Definition constants (F : transformation) : list (option nat) := stability (projT1 F).

  (** ** Partitions

      Part i holds the records with the i-th listed key; other records are
      dropped, and no key is listed twice.  [Whole] is the partition of a single
      query: one part, the table itself. *)

  Inductive splitter :=
    | Whole
    | Keyed (key : record -> record) (keys : list record) (distinct_keys : NoDup keys).

  Definition part (f : splitter) (i : nat) (T : table) : table :=
    match f with
    | Whole => match i with 0%nat => T | _ => [] end
    | Keyed key keys _ => match nth_error keys i with Some k => members key k T | None => [] end
    end.

  Lemma part_stable f n T U :
    (System.sum_from 0 n (fun i => distance (part f i T) (part f i U)) <= distance T U)%nat.
  Proof.
    destruct f as [|key keys N]; unfold part.
    - assert (Z : forall n i, System.sum_from (S i) n (fun j => distance (match j with 0%nat => T | _ => [] end)
        (match j with 0%nat => U | _ => [] end)) = 0%nat).
      { induction n0 as [|m IH]; intros i; cbn [System.sum_from]; [reflexivity|]. rewrite IH, distance_refl.
        reflexivity. }
      destruct n; cbn [System.sum_from]; [lia|]. rewrite Z. lia.
    - eapply Nat.le_trans; [|apply (partition_stable key keys T U N)].
      assert (K : forall h : record -> nat, forall n i,
        (System.sum_from i n (fun j => match nth_error keys j with Some k => h k | None => 0 end) <=
          total (skipn i keys) h)%nat).
      { intros h. induction n0 as [|m IH]; intros i; cbn [System.sum_from]; [lia|]. specialize (IH (S i)).
        destruct (nth_error keys i) as [k|] eqn:E.
        - apply nth_error_split in E. destruct E as (l1 & l2 & -> & <-).
          rewrite skipn_app, skipn_all, Nat.sub_diag. simpl.
          replace (skipn (S (length l1)) (l1 ++ k :: l2)) with l2 in IH; [lia|].
          rewrite skipn_app, skipn_all2 by lia. replace (S (length l1) - length l1)%nat with 1%nat by lia.
          reflexivity.
        - apply nth_error_None in E. rewrite skipn_all2 in * by lia. exact IH. }
      specialize (K (fun k => distance (members key k T) (members key k U)) n 0%nat). cbn [skipn] in K.
      eapply Nat.le_trans; [|exact K]. apply Nat.eq_le_incl, System.sum_from_ext. intros i.
      destruct (nth_error keys i); [reflexivity|]. apply distance_refl.
  Qed.

  (** ** The system *)

  Definition tables_with (mechanism : Type) (mass : mechanism -> R -> table -> list Z -> R)
      (mass_distribution : forall q e T, 0 < e -> distribution (mass q e T))
      (mass_same : forall q e T U v, distance T U = 0%nat -> mass q e T v = mass q e U v) : System.Tables.
  Proof.
    refine {| System.table := table;
              System.distance := distance;
              System.distance_refl := distance_refl;
              System.distance_triangle := distance_triangle;
              System.distance_path := distance_path;
              System.transformation := transformation;
              System.apply := apply;
              System.stability := constants;
              System.splitter := splitter;
              System.part := part;
              System.part_stable := part_stable;
              System.mechanism := mechanism;
              System.answer := list Z;
              System.answer_dec := list_eq_dec Z.eq_dec;
              System.mass := mass;
              System.mass_distribution := mass_distribution;
              System.mass_same := mass_same |}.
    intros [s f] before after c H. pose proof (stability_sound s f before after c H) as K.
    destruct c as [c|]; [exact K|exact K].
  Defined.

  Definition bags : System.System :=
    {| System.tables := tables_with (Mechanism (list Z)) (mass _) (mass_distribution _) (mass_same _);
       System.mass_private := mass_private _ |}.

  (** ** The paper's theorem *)

  Section Featherweight.
    Import Featherweight.
    Variables (client : Client bags) (start : program bags client).

    Theorem bags_featherweight (T T' : table) b t p c : 0 <= b -> (distance T T' <= 1)%nat ->
      trace bags client (init bags client [] start T b) t p c ->
      exists q c', trace bags client (init bags client [] start T' b) t q c' /\ similar bags client c c' /\
        0 <= B bags client c <= b /\ p <= q * exp (b - B bags client c).
    Proof. apply (featherweight bags client [] start). Qed.

    Theorem bags_featherweight_dp (T T' : table) b n event : 0 <= b -> (distance T T' <= 1)%nat ->
      sum (probability bags client n (init bags client [] start T b)) event <=
      exp b * sum (probability bags client n (init bags client [] start T' b)) event.
    Proof. apply (event_dp bags client [] start). Qed.

    Theorem bags_featherweight_event_dp (T T' : table) b n event p q : 0 <= b -> (distance T T' <= 1)%nat ->
      Events.chance_of (probability bags client n (init bags client [] start T b)) event p ->
      Events.chance_of (probability bags client n (init bags client [] start T' b)) event q -> p <= q * exp b.
    Proof.
      intros Hb Hd. apply Events.chance_private; [left; apply exp_pos|]. intros t.
      apply (trace_dp bags client [] start T T' b n t Hb Hd).
    Qed.

    Theorem bags_featherweight_deterministic c t p q c1 c2 :
      trace bags client c t p c1 -> trace bags client c t q c2 -> p = q /\ c1 = c2.
    Proof. apply trace_deterministic. Qed.

    Theorem bags_featherweight_sums_to_one n c : distribution (probability bags client n c).
    Proof. apply traces_sum_to_one. Qed.
  End Featherweight.

  (** ** An example

      The program that counts its input, again and again, at e. *)

  Section Example.
    Import Featherweight.

    Definition counter (e : R) : Client bags :=
      {| program := unit; does := fun _ => Query bags 0 Whole [released Count] e; told := fun _ _ => tt |}.

    Lemma sum_of_ones (T : table) : sum_of (fun _ => 1%Z) T = Z.of_nat (length T).
    Proof. induction T as [|x T IH]; [reflexivity|]. cbn [sum_of length]. lia. Qed.

    (** Within the budget it sees the number of records, plus noise. *)
    Example count_answered (T : table) b e v : 0 < e -> e <= b ->
      probability bags (counter e) 1 (init bags (counter e) [] tt T b) [Answers bags [[v]]] =
        laplace e (Z.of_nat (length T)) v.
    Proof.
      intros He Hb. cbn [probability]. unfold chances. simpl. destruct (Rlt_dec 0 e); [|lra].
      destruct (Rle_dec (1 * e) b); [|lra]. simpl. rewrite sum_of_ones. unfold rate. replace (e / 1) with e by field.
      ring.
    Qed.

    (** Beyond it, ⊥. *)
    Example count_refused (T : table) b e : 0 < e -> b < e ->
      probability bags (counter e) 1 (init bags (counter e) [] tt T b) [Bottom bags] = 1.
    Proof.
      intros He Hb. cbn [probability]. unfold chances. simpl. destruct (Rlt_dec 0 e); [|lra].
      destruct (Rle_dec (1 * e) b); [lra|]. rewrite certain_self. ring.
    Qed.
  End Example.

  (** A median, or any other quantile, is a choice at e/Δ: the same system, one
      more query. *)
  Section Median.
    Import Featherweight.
    Variables (c : Clamp (record := record)) (f : Fraction) (e : R).

    Definition chooser : Client bags :=
      {| program := unit; does := fun _ => Query bags 0 Whole [released (Rank c f)] e; told := fun _ _ => tt |}.

    Example rank_answered (T : table) b i : 0 < e -> e <= b ->
      probability bags chooser 1 (init bags chooser [] tt T b) [Answers bags [[(lower c + Z.of_nat i)%Z]]] =
        PermuteAndFlip.permute_and_flip (e / IZR (rank_sensitivity f)) (rank_scores c f T) i.
    Proof.
      intros He Hb. cbn [probability]. unfold chances.
      cbn [does chooser P init E fst snd Nat.eqb B]. destruct (Rlt_dec 0 e) as [_|N]; [|contradiction].
      destruct (Rle_dec (INR 1 * e) b) as [_|N]; [|exfalso; apply N; change (INR 1) with 1; rewrite Rmult_1_l; exact Hb].
      cbn [System.parallel]. change (System.mass bags (released (Rank c f)) e (System.part bags Whole 0 T))
        with (mass _ (released (Rank c f)) e T). rewrite rank_rate. ring.
    Qed.
  End Median.

  (** ** The general theorem *)

  Section General.
    Import Sources General.
    Variables (roots : nat) (budget : vector) (client : Client bags) (start : program bags client).
    Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.

    (** The exponent is Σ_x budget(x) * |D(x) ⊖ D'(x)|. *)
    Theorem bags_joint_dp (D D' : nat -> table) n t :
      probability bags roots budget client n start (init bags roots [] D) t <=
      probability bags roots budget client n start (init bags roots [] D') t *
      exp (dot roots budget (fun x => INR (distance (D x) (D' x)))).
    Proof. exact (joint_dp bags roots budget client (System.mass_private bags) [] budget_nonneg n start t D D'). Qed.

    (** The same with what was paid in place of the budgets. *)
    Theorem bags_joint_dp_spent (D D' : nat -> table) t :
      let s := reached bags roots budget client start (init bags roots [] D) t in
      let s' := reached bags roots budget client start (init bags roots [] D') t in
      accounts bags s = accounts bags s' /\ (forall v, sensitivity_of bags s v = sensitivity_of bags s' v) /\
      certificate (accounts bags s) /\
      (forall x, (x < roots)%nat -> counters (accounts bags s) x <= budget x) /\
      probability bags roots budget client (length t) start (init bags roots [] D) t <=
        probability bags roots budget client (length t) start (init bags roots [] D') t *
        exp (dot roots (counters (accounts bags s)) (fun x => INR (distance (D x) (D' x)))).
    Proof. exact (joint_dp_spent bags roots budget client (System.mass_private bags) [] budget_nonneg start t D D'). Qed.

    Theorem bags_root_dp (D D' : nat -> table) n event x : (x < roots)%nat ->
      (distance (D x) (D' x) <= 1)%nat -> (forall y, y <> x -> D y = D' y) ->
      sum (probability bags roots budget client n start (init bags roots [] D)) event <=
      exp (budget x) * sum (probability bags roots budget client n start (init bags roots [] D')) event.
    Proof. exact (root_dp bags roots budget client (System.mass_private bags) [] budget_nonneg n start event D D' x). Qed.
  End General.

  (** ** Any event, any program *)

  Section Events.
    Import Sources General Events.
    Variables (roots : nat) (budget : vector).
    Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.

    Theorem bags_event_dp (client : Client bags) start (D D' : nat -> table) n event p q :
      chance_of (probability bags roots budget client n start (init bags roots [] D)) event p ->
      chance_of (probability bags roots budget client n start (init bags roots [] D')) event q ->
      p <= q * exp (dot roots budget (fun x => INR (distance (D x) (D' x)))).
    Proof. exact (event_dp bags roots budget [] budget_nonneg client start D D' n event p q). Qed.

    Theorem bags_random_dp (client : RandomClient bags) (D D' : nat -> table) n p event u v :
      chance_of (likelihood bags roots budget client n p (init bags roots [] D)) event u ->
      chance_of (likelihood bags roots budget client n p (init bags roots [] D')) event v ->
      u <= v * exp (dot roots budget (fun x => INR (distance (D x) (D' x)))).
    Proof. exact (random_dp bags roots budget [] budget_nonneg client D D' n p event u v). Qed.
  End Events.

  (** ** Sessions under one set of budgets, as the ledger runs them *)

  Theorem bags_sessions_dp roots m budget analyst cap grain scheduler (D D' : Sessions.Data bags scheduler) d0 p n t :
    0 < grain -> (forall x, (x < roots)%nat -> 0 <= budget x) -> (forall x, 0 <= d0 x) ->
    (forall q x, (x < roots)%nat -> INR (distance (D q x) (D' q x)) <= d0 x) ->
    let allowed := Sessions.left_to m budget analyst cap grain in
    Sessions.chance bags roots m allowed scheduler D n p (Sessions.nothing bags roots []) t <=
    Sessions.chance bags roots m allowed scheduler D' n p (Sessions.nothing bags roots []) t *
      exp (Sources.dot roots budget d0).
  Proof. intros. apply (Sessions.ledger_dp roots m budget analyst cap grain); assumption. Qed.

  Theorem bags_sessions_event_dp roots m budget analyst cap grain scheduler (D D' : Sessions.Data bags scheduler) d0 n
      {seed} (weight : seed -> R) start (event : seed * list (General.Observation bags) -> Prop) u v :
    0 < grain -> (forall x, (x < roots)%nat -> 0 <= budget x) -> (forall x, 0 <= d0 x) ->
    (forall q x, (x < roots)%nat -> INR (distance (D q x) (D' q x)) <= d0 x) -> (forall s, 0 <= weight s) ->
    let allowed := Sessions.left_to m budget analyst cap grain in
    let run D := fun '(s, t) => weight s *
      Sessions.chance bags roots m allowed scheduler D n (start s) (Sessions.nothing bags roots []) t in
    Events.chance_of (run D) event u -> Events.chance_of (run D') event v ->
    u <= v * exp (Sources.dot roots budget d0).
  Proof.
    intros Hg HB Hd HD Hw allowed run Hu Hv.
    exact (Sessions.ledger_event_dp roots m budget analyst cap grain Hg bags [] scheduler D D' d0 n weight start event u v
      HB Hd HD Hw Hu Hv).
  Qed.

  Theorem bags_deterministic roots budget (client : General.Client bags) t p s w1 p1 s1 w2 p2 s2 :
    General.trace bags roots budget client p s t w1 p1 s1 -> General.trace bags roots budget client p s t w2 p2 s2 ->
    w1 = w2 /\ p1 = p2 /\ s1 = s2.
  Proof. apply General.trace_deterministic. Qed.

  Theorem bags_sums_to_one roots budget (client : General.Client bags) n p s :
    distribution (General.probability bags roots budget client n p s).
  Proof. apply General.traces_sum_to_one. Qed.
End Instance.
