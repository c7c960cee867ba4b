(** * Everything together

    Bags over any ordered record type, the registry of transformations,
    partition by listed keys, discrete Laplace noise on vectors of sums, the
    exponential mechanism and permute-and-flip: they keep every promise of
    [System], so the theorems hold with no hypothesis left. *)

Require Import Reals Lra Lia List Arith ZArith Permutation.
Require Import Fpinq.Bags Fpinq.Stability Fpinq.Plans Fpinq.Probability Fpinq.Mechanisms Fpinq.PermuteAndFlip.
Require Fpinq.System Fpinq.Sources Fpinq.Featherweight Fpinq.General.
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

  (** ** Mechanisms *)

  (** Sums over the records, perturbed by discrete Laplace noise of rate e/Δ. *)
  Record Statistic := {
    coordinates : list (record -> Z);
    delta : positive;
    bounded : forall x, (contribution coordinates x <= Z.pos delta)%Z }.

  (** Candidates with scores of sensitivity Δ. *)
  Record Choice := {
    scores : list (table -> Z);
    step_size : positive;
    some_candidate : scores <> [];
    scores_stable : forall s, In s scores ->
      forall T U, (Z.abs (s T - s U) <= Z.pos step_size * Z.of_nat (distance T U))%Z }.

  Inductive mechanism :=
    | Noisy (m : Statistic)
    | Exponential (c : Choice)
    | Permute (c : Choice).

  Definition rate (e : R) (d : positive) : R := e / IZR (Z.pos d).

  Definition score_vector (c : Choice) (T : table) : list Z := map (fun s => s T) (scores c).

  (** The probability that candidate i is chosen. *)
  Definition chosen (q : mechanism) (e : R) (T : table) (i : nat) : R :=
    match q with
    | Noisy _ => 0
    | Exponential c => choose (rate e (step_size c)) (score_vector c T) i
    | Permute c => permute_and_flip (rate e (step_size c)) (score_vector c T) i
    end.

  Definition position (v : list Z) : option nat :=
    match v with [i] => if (0 <=? i)%Z then Some (Z.to_nat i) else None | _ => None end.

  (** Pr[q(e, T) = v].  An answer is a vector of integers; a choice is answered
      by the position of the candidate. *)
  Definition mass (q : mechanism) (e : R) (T : table) (v : list Z) : R :=
    match q with
    | Noisy m => noise (rate e (delta m)) (measure (coordinates m) T) v
    | _ => match position v with Some i => chosen q e T i | None => 0 end
    end.

  Lemma rate_pos e d : 0 < e -> 0 < rate e d.
  Proof. intros H. unfold rate. apply Rmult_lt_0_compat; auto. apply Rinv_0_lt_compat, IZR_lt. lia. Qed.

  Lemma rate_delta e d : rate e d * IZR (Z.pos d) = e.
  Proof. unfold rate. field. apply IZR_neq. lia. Qed.

  Lemma position_spec v i : position v = Some i <-> v = [Z.of_nat i].
  Proof.
    unfold position. destruct v as [|j [|]]; split; intros H; try discriminate.
    - destruct (Z.leb_spec 0 j); [|discriminate]. injection H as <-. rewrite Z2Nat.id by assumption. reflexivity.
    - injection H as ->. destruct (Z.leb_spec 0 (Z.of_nat i)); [|lia]. rewrite Nat2Z.id. reflexivity.
  Qed.

  Lemma some_score c T : score_vector c T <> [].
  Proof. unfold score_vector. pose proof (some_candidate c) as H. destruct (scores c); simpl; congruence. Qed.

  Lemma mass_distribution q e T : 0 < e -> distribution (mass q e T).
  Proof.
    intros He. destruct q as [m|c|c]; simpl.
    - apply noise_distribution, rate_pos, He.
    - apply (distribution_rename (choose (rate e (step_size c)) (score_vector c T)) (fun i => [Z.of_nat i])
        position position_spec).
      apply choose_distribution, some_score.
    - apply (distribution_rename (permute_and_flip (rate e (step_size c)) (score_vector c T))
        (fun i => [Z.of_nat i]) position position_spec).
      apply permute_and_flip_distribution, some_score. apply rate_pos, He.
  Qed.

  Lemma score_vector_bag c T U : distance T U = 0%nat -> score_vector c T = score_vector c U.
  Proof.
    intros H. apply map_ext_in. intros s Hs. pose proof (scores_stable c s Hs T U) as K. rewrite H in K. lia.
  Qed.

  Lemma score_vector_near c T U : distance T U = 1%nat ->
    near (Z.pos (step_size c)) (score_vector c T) (score_vector c U).
  Proof.
    intros H. unfold near, score_vector. pose proof (scores_stable c) as K.
    induction (scores c) as [|s l IH]; simpl; constructor.
    - specialize (K s (or_introl eq_refl) T U). rewrite H in K. lia.
    - apply IH. intros s' Hs'. apply K. right. exact Hs'.
  Qed.

  Lemma mass_same q e T U v : distance T U = 0%nat -> mass q e T v = mass q e U v.
  Proof.
    intros H. destruct q as [m|c|c]; simpl.
    - apply distance_zero in H. rewrite (measure_bag _ T U H). reflexivity.
    - rewrite (score_vector_bag c T U H). reflexivity.
    - rewrite (score_vector_bag c T U H). reflexivity.
  Qed.

  Lemma mass_private q e T U v : 0 < e -> distance T U = 1%nat -> mass q e T v <= mass q e U v * exp e.
  Proof.
    intros He H. destruct q as [m|c|c]; simpl.
    - eapply Rle_trans; [apply (noise_private _ (rate_pos e (delta m) He) (measure (coordinates m) T)
        (measure (coordinates m) U))|].
      + unfold measure. rewrite !map_length. reflexivity.
      + apply Rmult_le_compat_l; [apply noise_distribution, rate_pos, He|]. apply exp_mono.
        rewrite <- (rate_delta e (delta m)) at 2. apply Rmult_le_compat_l; [left; apply rate_pos, He|]. apply IZR_le.
        pose proof (measure_sensitivity (coordinates m) (Z.pos (delta m)) (bounded m) T U) as K. rewrite H in K. lia.
    - destruct (position v) as [i|]; [|lra]. rewrite <- (rate_delta e (step_size c)) at 3.
      apply choose_private; [apply rate_pos, He|apply score_vector_near, H].
    - destruct (position v) as [i|]; [|lra]. rewrite <- (rate_delta e (step_size c)) at 3.
      apply permute_and_flip_private; [apply rate_pos, He|apply score_vector_near, H|apply some_score].
  Qed.

  (** ** The system *)

  Definition bags : System.System.
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
              System.mass_same := mass_same;
              System.mass_private := mass_private |}.
    intros [s f] before after c H. pose proof (stability_sound s f before after c H) as K.
    destruct c as [c|]; [exact K|exact K].
  Defined.

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

    Definition counting : Statistic :=
      {| coordinates := count_statistic; delta := 1; bounded := fun x => Z.eq_le_incl _ _ (count_contribution x) |}.

    Definition counter (e : R) : Client bags :=
      {| program := unit; does := fun _ => Query bags 0 Whole [Noisy counting] e; told := fun _ _ => tt |}.

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
    Proof. exact (joint_dp bags roots budget client [] budget_nonneg n start t D D'). Qed.

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
    Proof. exact (joint_dp_spent bags roots budget client [] budget_nonneg start t D D'). Qed.

    Theorem bags_root_dp (D D' : nat -> table) n event x : (x < roots)%nat ->
      (distance (D x) (D' x) <= 1)%nat -> (forall y, y <> x -> D y = D' y) ->
      sum (probability bags roots budget client n start (init bags roots [] D)) event <=
      exp (budget x) * sum (probability bags roots budget client n start (init bags roots [] D')) event.
    Proof. exact (root_dp bags roots budget client [] budget_nonneg n start event D D' x). Qed.
  End General.

  Theorem bags_deterministic roots budget (client : General.Client bags) t p s w1 p1 s1 w2 p2 s2 :
    General.trace bags roots budget client p s t w1 p1 s1 -> General.trace bags roots budget client p s t w2 p2 s2 ->
    w1 = w2 /\ p1 = p2 /\ s1 = s2.
  Proof. apply General.trace_deterministic. Qed.

  Theorem bags_sums_to_one roots budget (client : General.Client bags) n p s :
    distribution (General.probability bags roots budget client n p s).
  Proof. apply General.traces_sum_to_one. Qed.
End Instance.
