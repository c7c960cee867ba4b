(** * A noisy number over an exact one

    [noise/quotient.py].  A draw V of discrete Laplace noise is compared with
    falling boundaries G_1 > G_2 > ...; what is released is how many of them V
    does not exceed.  A neighbour moves every boundary by at most Δ, and the
    distance of two that follow each other by a factor of at most 1 + loss: then
    each outcome is at most exp(rate * Δ) * (1 + loss) times as likely. *)

Require Import Reals Lra Lia List Arith ZArith.
Require Import Fpinq.Probability Fpinq.Mechanisms.
Import ListNotations.
Open Scope R_scope.

Section Quotient.
  Variable rate : R.
  Hypothesis rate_pos : 0 < rate.
  Notation a := (decay rate).

  Definition draw (v : Z) : R := laplace rate 0 v.

  (** ** P[V <= g] *)

  Definition cdf (g : Z) : R :=
    if (g <? 0)%Z then a ^ Z.abs_nat g / (1 + a) else 1 - a ^ S (Z.abs_nat g) / (1 + a).

  Lemma a_range : 0 < a < 1.
  Proof. apply decay_range, rate_pos. Qed.

  Lemma cdf_step g : cdf g = cdf (g - 1) + draw g.
  Proof.
    pose proof a_range. unfold cdf, draw, laplace. rewrite Z.sub_0_r.
    destruct (Z.ltb_spec g 0), (Z.ltb_spec (g - 1) 0); try lia.
    - replace (Z.abs_nat (g - 1)) with (S (Z.abs_nat g)) by lia. simpl. field. lra.
    - replace g with 0%Z by lia. simpl. field. lra.
    - replace (Z.abs_nat g) with (S (Z.abs_nat (g - 1))) by lia. simpl. field. lra.
  Qed.

  Lemma cdf_mirror g : 1 - cdf g = cdf (- g - 1).
  Proof.
    pose proof a_range. unfold cdf. destruct (Z.ltb_spec g 0), (Z.ltb_spec (- g - 1) 0); try lia.
    - replace (S (Z.abs_nat (- g - 1))) with (Z.abs_nat g) by lia. field. lra.
    - replace (Z.abs_nat (- g - 1)) with (S (Z.abs_nat g)) by lia. simpl. field. lra.
  Qed.

  Lemma power_range n : 0 < a ^ n <= 1.
  Proof.
    pose proof a_range. split; [apply pow_lt; lra|]. rewrite <- (pow1 n). apply pow_incr. lra.
  Qed.

  Lemma cdf_pos g : 0 < cdf g.
  Proof.
    pose proof a_range. unfold cdf. destruct (g <? 0)%Z.
    - apply Rmult_lt_0_compat; [apply power_range|apply Rinv_0_lt_compat; lra].
    - assert (a ^ S (Z.abs_nat g) / (1 + a) < 1); [|lra].
      apply Rmult_lt_reg_r with (1 + a); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
      simpl. pose proof (power_range (Z.abs_nat g)). nra.
  Qed.

  Lemma draw_nonneg v : 0 <= draw v.
  Proof. apply laplace_nonneg, rate_pos. Qed.

  (** One step further down it falls by a factor of at most e^rate. *)
  Lemma cdf_ratio g : cdf g <= cdf (g - 1) * exp rate.
  Proof.
    pose proof a_range as Ha.
    assert (E : exp rate * a = 1) by (unfold decay; rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
    assert (K : a * cdf g <= cdf (g - 1)).
    { unfold cdf. destruct (Z.ltb_spec g 0), (Z.ltb_spec (g - 1) 0); try lia.
      - replace (Z.abs_nat (g - 1)) with (S (Z.abs_nat g)) by lia. simpl. right. field. lra.
      - replace g with 0%Z by lia. simpl. right. field. lra.
      - replace (Z.abs_nat g) with (S (Z.abs_nat (g - 1))) by lia. set (x := a ^ S (Z.abs_nat (g - 1))).
        assert (Hx : x <= 1) by apply power_range.
        change (a ^ S (S (Z.abs_nat (g - 1)))) with (a * x).
        apply Rmult_le_reg_r with (1 + a); [lra|].
        replace (a * (1 - a * x / (1 + a)) * (1 + a)) with (a * (1 + a) - a * a * x) by (field; lra).
        replace ((1 - x / (1 + a)) * (1 + a)) with (1 + a - x) by (field; lra).
        assert (0 <= (1 - x) * (1 - a * a)); [|nra]. apply Rmult_le_pos; [lra|nra]. }
    pose proof (exp_pos rate). replace (cdf g) with (exp rate * (a * cdf g)) by (rewrite <- Rmult_assoc, E; ring).
    rewrite (Rmult_comm (cdf (g - 1))). apply Rmult_le_compat_l; lra.
  Qed.

  Lemma cdf_mono g n : cdf (g - Z.of_nat n) <= cdf g.
  Proof.
    induction n as [|n IH]; [replace (g - Z.of_nat 0)%Z with g by lia; lra|].
    eapply Rle_trans; [|exact IH]. rewrite (cdf_step (g - Z.of_nat n)).
    replace (g - Z.of_nat n - 1)%Z with (g - Z.of_nat (S n))%Z by lia.
    pose proof (draw_nonneg (g - Z.of_nat n)). lra.
  Qed.

  Lemma cdf_far g n : cdf g <= cdf (g - Z.of_nat n) * exp (rate * INR n).
  Proof.
    induction n as [|n IH]; [replace (g - Z.of_nat 0)%Z with g by lia; simpl; rewrite Rmult_0_r, exp_0; lra|].
    eapply Rle_trans; [exact IH|]. rewrite S_INR, Rmult_plus_distr_l, Rmult_1_r, Rplus_comm, exp_plus, <- Rmult_assoc.
    apply Rmult_le_compat_r; [left; apply exp_pos|].
    replace (g - Z.of_nat (S n))%Z with (g - Z.of_nat n - 1)%Z by lia. apply cdf_ratio.
  Qed.

  Variable delta : Z.
  Hypothesis delta_nonneg : (0 <= delta)%Z.
  Notation most := (exp (rate * IZR delta)).

  Lemma most_one : 1 <= most.
  Proof.
    rewrite <- exp_0. apply exp_mono. apply Rmult_le_pos; [lra|]. apply IZR_le. exact delta_nonneg.
  Qed.

  (** Both tails. *)
  Lemma cdf_near g h : (Z.abs (g - h) <= delta)%Z -> cdf g <= cdf h * most.
  Proof.
    intros H. pose proof most_one. pose proof (cdf_pos h).
    destruct (Z.le_ge_cases g h) as [L|L].
    - pose proof (cdf_mono h (Z.to_nat (h - g))) as M. rewrite Z2Nat.id in M by lia.
      replace (h - (h - g))%Z with g in M by lia. nra.
    - pose proof (cdf_far g (Z.to_nat (g - h))) as M. rewrite Z2Nat.id in M by lia.
      replace (g - (g - h))%Z with h in M by lia. eapply Rle_trans; [exact M|].
      apply Rmult_le_compat_l; [lra|]. apply exp_mono, Rmult_le_compat_l; [lra|].
      rewrite INR_IZR_INZ, Z2Nat.id by lia. apply IZR_le. lia.
  Qed.

  Lemma above_near g h : (Z.abs (g - h) <= delta)%Z -> 1 - cdf g <= (1 - cdf h) * most.
  Proof. intros H. rewrite !cdf_mirror. apply cdf_near. lia. Qed.

  (** ** Between two boundaries

      The values above low, as many as length. *)

  Definition between (low : Z) (length : nat) : R :=
    sum (fun i => draw (low + 1 + Z.of_nat i)) (seq 0 length).

  Lemma cdf_between low n : cdf (low + Z.of_nat n) - cdf low = between low n.
  Proof.
    unfold between. induction n as [|n IH]; [replace (low + Z.of_nat 0)%Z with low by lia; simpl; ring|].
    rewrite seq_S, sum_app, <- IH. simpl sum. rewrite (cdf_step (low + Z.of_nat (S n))).
    replace (low + Z.of_nat (S n) - 1)%Z with (low + Z.of_nat n)%Z by lia.
    replace (low + 1 + Z.of_nat n)%Z with (low + Z.of_nat (S n))%Z by lia. ring.
  Qed.

  (** Every value c times, in order. *)
  Lemma sum_repeated f c n : c <> O ->
    sum (fun p => f (p / c)%nat) (seq 0 (n * c)) = INR c * sum f (seq 0 n).
  Proof.
    intros C. induction n as [|n IH]; [simpl; ring|].
    rewrite seq_S, sum_app. cbn [sum plus]. rewrite Rplus_0_r, Rmult_plus_distr_l, <- IH.
    replace (S n * c)%nat with (n * c + c)%nat by lia. rewrite seq_app, sum_app. f_equal. cbn [plus].
    rewrite (sum_ext _ (fun _ => f n)).
    - clear. generalize (n * c)%nat as s. induction c as [|c IH]; intros s; [simpl; ring|].
      cbn [seq sum]. rewrite IH, S_INR. ring.
    - intros p H. apply in_seq in H. f_equal. symmetry. apply (Nat.div_unique p c n (p - n * c)); lia.
  Qed.

  Lemma draw_near v w : (Z.abs (v - w) <= delta)%Z -> draw v <= draw w * most.
  Proof.
    intros H. unfold draw.
    replace (laplace rate 0 v) with (laplace rate (- v) 0) by (unfold laplace; do 2 f_equal; lia).
    replace (laplace rate 0 w) with (laplace rate (- w) 0) by (unfold laplace; do 2 f_equal; lia).
    eapply Rle_trans; [apply (laplace_private rate (- v) (- w) 0 rate_pos)|].
    apply Rmult_le_compat_l; [apply laplace_nonneg, rate_pos|].
    apply exp_mono, Rmult_le_compat_l; [lra|]. apply IZR_le. lia.
  Qed.

  (** Of p = 0 ... m * n - 1, in steps of n and of m: never farther apart than at one of the ends. *)
  Lemma steps_near (m n p : Z) : (0 < m -> 0 < n -> 0 <= p < m * n -> n <= m -> p / n <= p / m + (m - n) /\ p / m <= p / n)%Z.
  Proof.
    intros M N P L.
    pose proof (Z.div_mod p n ltac:(lia)) as En. pose proof (Z.mod_pos_bound p n N) as Bn.
    pose proof (Z.div_mod p m ltac:(lia)) as Em. pose proof (Z.mod_pos_bound p m M) as Bm.
    set (u := (p / n)%Z) in *. set (w := (p / m)%Z) in *.
    split; [|nia]. assert (U : (u < m)%Z) by nia.
    destruct (Z.le_gt_cases u (w + (m - n))) as [|G]; [assumption|exfalso].
    assert (X : (w + 1 <= u - (m - n))%Z) by lia.
    assert (Y : (p < (u - (m - n)) * m)%Z) by nia. assert (W : (u * n <= p)%Z) by nia. nia.
  Qed.

  Lemma ends_near (low low' : Z) (m n p : nat) : (0 < m)%nat -> (0 < n)%nat -> (p < m * n)%nat ->
    (Z.abs (low - low') <= delta)%Z -> (Z.abs (low + Z.of_nat m - (low' + Z.of_nat n)) <= delta)%Z ->
    (Z.abs (low + 1 + Z.of_nat (p / n) - (low' + 1 + Z.of_nat (p / m))) <= delta)%Z.
  Proof.
    intros M N P H K. rewrite !Nat2Z.inj_div. destruct (Nat.le_ge_cases n m) as [L|L].
    - pose proof (steps_near (Z.of_nat m) (Z.of_nat n) (Z.of_nat p) ltac:(lia) ltac:(lia) ltac:(nia) ltac:(lia)). lia.
    - pose proof (steps_near (Z.of_nat n) (Z.of_nat m) (Z.of_nat p) ltac:(lia) ltac:(lia) ltac:(nia) ltac:(lia)). lia.
  Qed.

  Theorem between_near (low low' : Z) (m n : nat) : (0 < m)%nat -> (0 < n)%nat ->
    (Z.abs (low - low') <= delta)%Z -> (Z.abs (low + Z.of_nat m - (low' + Z.of_nat n)) <= delta)%Z ->
    INR n * between low m <= INR m * between low' n * most.
  Proof.
    intros M N H K. unfold between.
    rewrite <- (sum_repeated (fun i => draw (low + 1 + Z.of_nat i)) n m) by lia.
    rewrite <- (sum_repeated (fun i => draw (low' + 1 + Z.of_nat i)) m n) by lia.
    rewrite (Nat.mul_comm n m), Rmult_comm, <- sum_scale. apply sum_le. intros p Hp. apply in_seq in Hp.
    rewrite Rmult_comm. apply draw_near, ends_near; auto. lia.
  Qed.

  (** ** What is released *)

  Fixpoint below (all : R) (gs : list Z) (j : nat) : R :=
    match gs, j with
    | [], O => all
    | [], S _ => 0
    | g :: _, O => all - cdf g
    | g :: gs, S j => below (cdf g) gs j
    end.

  (** How many boundaries V does not exceed. *)
  Definition crossing (gs : list Z) : nat -> R := below 1 gs.

  Fixpoint falling (gs : list Z) : Prop :=
    match gs with g :: (h :: _) as t => (h <= g)%Z /\ falling t | _ => True end.

  Lemma cdf_order g h : (h <= g)%Z -> cdf h <= cdf g.
  Proof.
    intros H. pose proof (cdf_mono g (Z.to_nat (g - h))) as M. rewrite Z2Nat.id in M by lia.
    replace (g - (g - h))%Z with h in M by lia. exact M.
  Qed.

  Lemma below_nonneg gs : falling gs -> forall all, 0 <= all -> match gs with [] => True | g :: _ => cdf g <= all end ->
    forall j, 0 <= below all gs j.
  Proof.
    induction gs as [|g gs IH]; intros F all A B [|j]; simpl; try lra. apply IH.
    - destruct gs; [exact I|apply F].
    - left. apply cdf_pos.
    - destruct gs as [|h gs]; [exact I|]. apply cdf_order, F.
  Qed.

  Lemma below_sum gs : forall all, sum (below all gs) (seq 0 (S (length gs))) = all.
  Proof.
    induction gs as [|g gs IH]; intros all; [simpl; ring|].
    cbn [length]. change (seq 0 (S (S (length gs)))) with (O :: seq 1 (S (length gs))).
    cbn [sum below]. rewrite <- seq_shift, sum_map. cbn [below].
    rewrite (sum_ext _ (below (cdf g) gs)) by reflexivity. rewrite IH. ring.
  Qed.

  Lemma below_beyond gs : forall all j, (length gs < j)%nat -> below all gs j = 0.
  Proof. induction gs as [|g gs IH]; intros all [|j] H; simpl in *; try lia; auto. apply IH. lia. Qed.

  Theorem crossing_distribution gs : falling gs -> distribution (crossing gs).
  Proof.
    intros F. apply (finite_distribution Nat.eq_dec _ (seq 0 (S (length gs)))).
    - intros j. apply below_nonneg; auto; [lra|]. destruct gs as [|g gs]; [exact I|].
      pose proof (cdf_pos (- g - 1)). rewrite <- cdf_mirror in H. lra.
    - apply seq_NoDup.
    - intros j H. apply below_beyond. rewrite in_seq in H. lia.
    - apply below_sum.
  Qed.

  Variable loss : R.
  Hypothesis loss_nonneg : 0 <= loss.

  (** Neighbours: boundaries near each other, distances alike. *)
  Inductive alike : list Z -> list Z -> Prop :=
    | alike_none : alike [] []
    | alike_one g h : (Z.abs (g - h) <= delta)%Z -> alike [g] [h]
    | alike_more g g' h h' gs hs : (Z.abs (g - h) <= delta)%Z -> (g' < g)%Z -> (h' < h)%Z ->
        IZR (g - g') <= IZR (h - h') * (1 + loss) -> alike (g' :: gs) (h' :: hs) -> alike (g :: g' :: gs) (h :: h' :: hs).

  Lemma alike_head g h gs hs : alike (g :: gs) (h :: hs) -> (Z.abs (g - h) <= delta)%Z.
  Proof. intros H. inversion H; auto. Qed.

  Lemma alike_falling gs hs : alike gs hs -> falling gs /\ falling hs.
  Proof. induction 1; simpl; auto. simpl in IHalike. intuition lia. Qed.

  Lemma between_alike g g' h h' : (Z.abs (g - h) <= delta)%Z -> (Z.abs (g' - h') <= delta)%Z -> (g' < g)%Z -> (h' < h)%Z ->
    IZR (g - g') <= IZR (h - h') * (1 + loss) -> cdf g - cdf g' <= (cdf h - cdf h') * (most * (1 + loss)).
  Proof.
    intros H H' G K L.
    pose proof (cdf_between g' (Z.to_nat (g - g'))) as E. pose proof (cdf_between h' (Z.to_nat (h - h'))) as E'.
    rewrite Z2Nat.id in E, E' by lia. replace (g' + (g - g'))%Z with g in E by lia.
    replace (h' + (h - h'))%Z with h in E' by lia. rewrite E, E'.
    pose proof (between_near g' h' (Z.to_nat (g - g')) (Z.to_nat (h - h')) ltac:(lia) ltac:(lia) H' ltac:(lia)) as B.
    rewrite !INR_IZR_INZ, !Z2Nat.id in B by lia.
    assert (N : 0 < IZR (h - h')) by (apply IZR_lt; lia).
    assert (P : 0 <= between h' (Z.to_nat (h - h'))) by (apply sum_nonneg; intros; apply draw_nonneg).
    pose proof most_one. apply Rmult_le_reg_l with (IZR (h - h')); [exact N|].
    eapply Rle_trans; [exact B|].
    replace (IZR (h - h') * (between h' (Z.to_nat (h - h')) * (most * (1 + loss))))
      with (IZR (h - h') * (1 + loss) * (between h' (Z.to_nat (h - h')) * most)) by ring.
    rewrite Rmult_assoc. apply Rmult_le_compat_r; [nra|exact L].
  Qed.

  Lemma below_private gs hs : alike gs hs -> forall all all' j,
    match gs, hs with g :: _, h :: _ => all - cdf g <= (all' - cdf h) * (most * (1 + loss)) | _, _ => True end ->
    all <= all' * (most * (1 + loss)) -> below all gs j <= below all' hs j * (most * (1 + loss)).
  Proof.
    pose proof most_one as M1.
    assert (S : forall x y, 0 <= y -> x <= y * most -> x <= y * (most * (1 + loss))).
    { intros x y Y X. eapply Rle_trans; [exact X|]. apply Rmult_le_compat_l; [exact Y|]. nra. }
    induction 1 as [|g h H|g g' h h' gs hs H G K L A IH]; intros all all' [|j] B C; simpl; try lra.
    - destruct j; simpl; [|lra]. apply S; [left; apply cdf_pos|]. apply cdf_near, H.
    - apply IH.
      + apply between_alike; auto. apply (alike_head _ _ _ _ A).
      + apply S; [left; apply cdf_pos|]. apply cdf_near, H.
  Qed.

  Theorem crossing_private gs hs j : alike gs hs -> crossing gs j <= crossing hs j * (most * (1 + loss)).
  Proof.
    intros A. pose proof most_one. apply below_private; [exact A| |nra].
    inversion A as [|g h H'|g g' h h' gs' hs' H']; subst; auto;
      (eapply Rle_trans; [apply above_near, H'|]; apply Rmult_le_compat_l; [rewrite cdf_mirror; left; apply cdf_pos|nra]).
  Qed.
End Quotient.
