(** * Mechanisms on bags

    A mechanism at e answers a bag by chance, with every answer at most exp(e)
    times as likely on one of two neighbouring bags as on the other.  This file
    makes such mechanisms from what [Mechanisms], [PermuteAndFlip] and
    [Monotone] prove of numbers and scores:

    - [noisy]: a vector of sums, with discrete Laplace noise of scale Δ/e;
    - [exact]: a vector of sums that no record can move, released as it is;
    - [selection]: a candidate chosen by its score, among them [one_way], by
      permute-and-flip at e/Δ, [either_way], at e/(2Δ), and the exponential
      mechanism;
    - [shares]: several choices, each at an equal share of e. *)

Require Import Reals Lra Lia List Arith ZArith Permutation.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Mechanisms Fpinq.PermuteAndFlip Fpinq.Monotone.
Import ListNotations.
Open Scope R_scope.

Section Private.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** [mass q e T v] = Pr[q(e, T) = v]. *)
  Record Mechanism (answer : Type) := {
    mass : R -> table -> answer -> R;
    mass_distribution : forall e T, 0 < e -> distribution (mass e T);
    mass_same : forall e T U v, distance T U = 0%nat -> mass e T v = mass e U v;
    mass_private : forall e T U v, 0 < e -> distance T U = 1%nat -> mass e T v <= mass e U v * exp e }.

  Definition rate (e : R) (d : positive) : R := e / IZR (Z.pos d).

  Lemma rate_pos e d : 0 < e -> 0 < rate e d.
  Proof. intros H. unfold rate. apply Rmult_lt_0_compat; auto. apply Rinv_0_lt_compat, IZR_lt. lia. Qed.

  Lemma rate_delta e d : rate e d * IZR (Z.pos d) = e.
  Proof. unfold rate. field. apply IZR_neq. lia. Qed.

  (** Neighbours: one has one record more. *)
  Lemma neighbours (T U : table) : distance T U = 1%nat -> exists x, Permutation T (x :: U) \/ Permutation U (x :: T).
  Proof.
    intros H. pose proof (split_left T U) as L. pose proof (split_right T U) as R. unfold distance in H.
    destruct (minus T U) as [|x [|]], (minus U T) as [|y [|]]; simpl in *; try lia.
    - exists y. right. generalize dependent (common T U). intros C L R. rewrite R, L. reflexivity.
    - exists x. left. generalize dependent (common T U). intros C L R. rewrite L, R. reflexivity.
  Qed.

  (** ** Sums *)

  Section Sums.
    Variable coordinates : list (record -> Z).

    Definition noisy (delta : positive) (bounded : forall x, (contribution coordinates x <= Z.pos delta)%Z) :
      Mechanism (list Z).
    Proof.
      refine {| mass := fun e T => noise (rate e delta) (measure coordinates T) |}.
      - intros e T He. apply noise_distribution, rate_pos, He.
      - intros e T U v H. apply distance_zero in H. rewrite (measure_bag _ T U H). reflexivity.
      - intros e T U v He H.
        eapply Rle_trans; [apply (noise_private _ (rate_pos e delta He) (measure coordinates T) (measure coordinates U))|].
        + unfold measure. rewrite !map_length. reflexivity.
        + apply Rmult_le_compat_l; [apply noise_distribution, rate_pos, He|]. apply exp_mono.
          rewrite <- (rate_delta e delta) at 2. apply Rmult_le_compat_l; [left; apply rate_pos, He|]. apply IZR_le.
          pose proof (measure_sensitivity coordinates (Z.pos delta) bounded T U) as K. rewrite H in K. lia.
    Defined.

    Lemma l1_nonneg qs : forall rs, (0 <= l1 qs rs)%Z.
    Proof. induction qs as [|q qs IH]; intros [|r rs]; simpl; try lia. specialize (IH rs). lia. Qed.

    Lemma l1_zero qs : forall rs, length qs = length rs -> l1 qs rs = 0%Z -> qs = rs.
    Proof.
      induction qs as [|q qs IH]; intros [|r rs] L H; simpl in *; try discriminate; auto.
      pose proof (l1_nonneg qs rs). f_equal; [lia|]. apply IH; lia.
    Qed.

    (** What no record can move is the same on every table. *)
    Lemma unmoved : (forall x, (contribution coordinates x <= 0)%Z) -> forall T U,
      measure coordinates T = measure coordinates U.
    Proof.
      intros H T U. apply l1_zero; [unfold measure; rewrite !map_length; reflexivity|].
      pose proof (measure_sensitivity coordinates 0 H T U).
      pose proof (l1_nonneg (measure coordinates T) (measure coordinates U)). lia.
    Qed.

    Definition exact (unmovable : forall x, (contribution coordinates x <= 0)%Z) : Mechanism (list Z).
    Proof.
      refine {| mass := fun _ T => certain (list_eq_dec Z.eq_dec) (measure coordinates T) |}.
      - intros. apply certain_distribution.
      - intros e T U v _. rewrite (unmoved unmovable T U). reflexivity.
      - intros e T U v He _. rewrite (unmoved unmovable T U).
        assert (0 <= certain (list_eq_dec Z.eq_dec) (measure coordinates U) v) by apply certain_distribution.
        assert (1 <= exp e) by (rewrite <- exp_0; apply exp_mono; lra). nra.
    Defined.

    Lemma contribution_nonneg x : (0 <= contribution coordinates x)%Z.
    Proof. induction coordinates as [|g gs IH]; simpl; lia. Qed.

    (** Noise of scale Δ/e, and none if Δ = 0. *)
    Definition sums (delta : Z) : (forall x, (contribution coordinates x <= delta)%Z) -> Mechanism (list Z) :=
      match delta with
      | Z0 => exact
      | Z.pos d => noisy d
      | Z.neg d => fun H => exact (fun x => Z.le_trans _ _ _ (H x) (Pos2Z.neg_is_nonpos d))
      end.
  End Sums.

  (** ** Choices *)

  Section Choices.
    Variables (scores : table -> list Z) (some_candidate : forall T, scores T <> [])
      (of_bags : forall T U, Permutation T U -> scores T = scores U).

    (** The candidates are the numbers first, first + 1, …. *)
    Variable first : Z.
    Definition position (v : Z) : option nat := if (first <=? v)%Z then Some (Z.to_nat (v - first)) else None.

    Lemma position_spec v i : position v = Some i <-> v = (first + Z.of_nat i)%Z.
    Proof.
      unfold position. destruct (Z.leb_spec first v); split; intros H'; try discriminate; try lia.
      - injection H' as <-. lia.
      - subst. f_equal. lia.
    Qed.

    Definition selection (pick : R -> list Z -> nat -> R)
        (pick_distribution : forall e ss, 0 < e -> ss <> [] -> distribution (pick e ss))
        (pick_private : forall e T U i, 0 < e -> distance T U = 1%nat ->
          pick e (scores T) i <= pick e (scores U) i * exp e) : Mechanism Z.
    Proof.
      refine {| mass := fun e T v => match position v with Some i => pick e (scores T) i | None => 0 end |}.
      - intros e T He. apply (distribution_rename (pick e (scores T)) (fun i => first + Z.of_nat i)%Z position); auto.
        apply position_spec.
      - intros e T U v H. apply distance_zero in H. rewrite (of_bags T U H). reflexivity.
      - intros e T U v He H. destruct (position v); [auto|lra].
    Defined.

    Variable delta : positive.

    (** One more record moves no score by more than Δ. *)
    Section EitherWay.
      Hypothesis moves : forall r T, near (Z.pos delta) (scores (r :: T)) (scores T).

      Lemma neighbours_near T U : distance T U = 1%nat -> near (Z.pos delta) (scores T) (scores U).
      Proof.
        intros H. destruct (neighbours T U H) as (r & [K|K]); rewrite (of_bags _ _ K); [apply moves|].
        apply near_sym, moves.
      Qed.

      Definition either_way : Mechanism Z.
      Proof.
        refine (selection (fun e => permute_and_flip (rate e delta / 2)) _ _).
        - intros e ss He. apply permute_and_flip_distribution. pose proof (rate_pos e delta He). lra.
        - intros e T U i He H. rewrite <- (rate_delta e delta) at 3.
          replace (rate e delta) with (2 * (rate e delta / 2)) at 3 by field.
          apply permute_and_flip_private; auto using neighbours_near. pose proof (rate_pos e delta He). lra.
      Defined.

      Definition exponential : Mechanism Z.
      Proof.
        refine (selection (fun e => choose (rate e delta)) _ _).
        - intros e ss He. apply choose_distribution.
        - intros e T U i He H. rewrite <- (rate_delta e delta) at 3.
          apply choose_private; auto using neighbours_near, rate_pos.
      Defined.
    End EitherWay.

    (** One more record lowers every score by 0 … Δ, or raises every one. *)
    Section OneWay.
      Hypothesis monotone : (forall r T, falls (Z.pos delta) (scores T) (scores (r :: T))) \/
        (forall r T, falls (Z.pos delta) (scores (r :: T)) (scores T)).

      Definition one_way : Mechanism Z.
      Proof.
        refine (selection (fun e => permute_and_flip (rate e delta)) _ _).
        - intros e ss He. apply permute_and_flip_distribution, rate_pos, He.
        - intros e T U i He H. rewrite <- (rate_delta e delta) at 3.
          destruct (neighbours T U H) as (r & [K|K]); rewrite (of_bags _ _ K); destruct monotone as [M|M];
            apply (permute_and_flip_monotone _ (rate_pos e delta He) _ _ _ i (M r _)); apply some_candidate.
      Defined.
    End OneWay.
  End Choices.

  (** ** Several choices, each at an equal share of e *)

  Fixpoint product (qs : list (Mechanism Z)) (e : R) (T : table) (vs : list Z) : R :=
    match qs, vs with
    | [], [] => 1
    | q :: qs, v :: vs => mass _ q e T v * product qs e T vs
    | _, _ => 0
    end.

  Lemma product_distribution qs e T : 0 < e -> distribution (product qs e T).
  Proof.
    intros He. induction qs as [|q qs IH].
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution Z.eq_dec (mass _ q e T) (fun _ => product qs e T))].
      + intros []; reflexivity.
      + apply mass_distribution, He.
      + intros _. exact IH.
  Qed.

  Lemma product_private qs e T U : 0 < e -> distance T U = 1%nat -> forall vs,
    product qs e T vs <= product qs e U vs * exp (INR (length qs) * e).
  Proof.
    intros He H. induction qs as [|q qs IH]; intros [|v vs];
      try (cbn [product length INR]; rewrite ?Rmult_0_l, ?exp_0; lra).
    change (length (q :: qs)) with (S (length qs)). rewrite S_INR. cbn [product].
    replace ((INR (length qs) + 1) * e) with (e + INR (length qs) * e) by ring. rewrite exp_plus.
    replace (mass _ q e U v * product qs e U vs * (exp e * exp (INR (length qs) * e)))
      with ((mass _ q e U v * exp e) * (product qs e U vs * exp (INR (length qs) * e))) by ring.
    apply Rmult_le_compat; auto using mass_private.
    - apply mass_distribution, He.
    - apply product_distribution, He.
  Qed.

  Lemma share_pos (qs : list (Mechanism Z)) e : 0 < e -> qs = [] \/ 0 < e / INR (length qs).
  Proof.
    intros He. destruct qs as [|q qs]; [left; reflexivity|right]. apply Rmult_lt_0_compat; auto.
    apply Rinv_0_lt_compat, lt_0_INR. simpl. lia.
  Qed.

  Definition shares (qs : list (Mechanism Z)) : Mechanism (list Z).
  Proof.
    refine {| mass := fun e T vs => product qs (e / INR (length qs)) T vs |}.
    - intros e T He. destruct (share_pos qs e He) as [->|Hs]; [|apply product_distribution, Hs].
      apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - intros e T U vs H. revert vs. generalize (e / INR (length qs)) as share. intros share.
      induction qs as [|q qs IH]; intros [|v vs]; cbn [product]; auto. rewrite (mass_same _ q share T U v H), IH. auto.
    - intros e T U vs He H. destruct (share_pos qs e He) as [->|Hs].
      + assert (1 <= exp e) by (rewrite <- exp_0; apply exp_mono; lra). destruct vs; cbn [product]; lra.
      + pose proof (product_private qs _ T U Hs H vs) as K.
        replace (INR (length qs) * (e / INR (length qs))) with e in K; [exact K|]. field.
        intros Z. rewrite Z in Hs. unfold Rdiv in Hs. rewrite Rinv_0 in Hs. lra.
  Defined.

  (** One choice, answered by a vector of one number. *)
  Definition alone (q : Mechanism Z) : Mechanism (list Z).
  Proof.
    refine {| mass := fun e T v => match v with [x] => mass _ q e T x | _ => 0 end |}.
    - intros e T He. eapply distribution_ext; [|apply (distribution_rename (mass _ q e T) (fun x => [x])
        (fun v => match v with [x] => Some x | _ => None end))].
      + intros [|x [|]]; reflexivity.
      + intros [|x [|]] y; split; intros H; congruence.
      + apply mass_distribution, He.
    - intros e T U [|x [|]] H; auto. apply mass_same, H.
    - intros e T U [|x [|]] He H; try lra. apply mass_private; assumption.
  Defined.
End Private.
