(** * Discrete Gaussian noise

    An exact integer plus noise z, with probability proportional to
    exp(-g z²) over all integers; g = 1/(2σ²).  The weights have a finite total,
    so they make a law, [gaussian_distribution]; vectors have independent noise on
    each coordinate; and [gaussians_close]: at every integer order the laws of two
    vectors are close at the loss g * |q - r|², |·| the L2 norm.  At an integer
    order the sum is an exact shift of the weights, and no theta function is
    needed.

    A vector of sums has squared L2 sensitivity Δ₂ if the squares that one record
    adds are together at most Δ₂; at distance n its squared L2 distance is at most
    n²Δ₂: [measure_l2]. *)

Require Import Reals Lra Lia List Arith ZArith Permutation.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Mechanisms Fpinq.Closeness.
Import ListNotations.
Open Scope R_scope.

Section Noise.
  Variable g : R.
  Hypothesis g_pos : 0 < g.

  Definition bell (z : Z) : R := exp (- (g * IZR z ^ 2)).

  (** ** The total of the weights

      |z| is at most z², so the weights are below those of Laplace noise. *)

  Lemma bell_below z : bell z <= decay g ^ Z.abs_nat (z - 0).
  Proof.
    rewrite Z.sub_0_r, decay_power. apply exp_mono.
    assert (INR (Z.abs_nat z) <= IZR z ^ 2).
    { rewrite INR_IZR_INZ, Zabs2Nat.id_abs. replace (IZR z ^ 2) with (IZR (z * z)) by (rewrite mult_IZR; ring).
      apply IZR_le. nia. }
    assert (g * INR (Z.abs_nat z) <= g * IZR z ^ 2) by (apply Rmult_le_compat_l; lra). lra.
  Qed.

  Lemma total_exists : {t : R | is_lub (fun x => exists l, NoDup l /\ x = sum bell l) t}.
  Proof.
    apply completeness.
    - pose proof (laplace_factor g g_pos) as F. set (c := (1 - decay g) / (1 + decay g)) in *.
      exists (/ c). intros x (l & N & ->).
      pose proof (at_most_one _ (laplace_distribution g 0%Z g_pos) l N) as H.
      apply (Rmult_le_reg_l c); auto. rewrite Rinv_r, <- sum_scale by lra.
      eapply Rle_trans; [apply sum_le|exact H]. intros z _. unfold laplace. fold c.
      apply Rmult_le_compat_l; [lra|apply bell_below].
    - exists 0, []. split; [constructor|reflexivity].
  Qed.

  Definition total : R := proj1_sig total_exists.

  Lemma total_bounds l : NoDup l -> sum bell l <= total.
  Proof. intros N. unfold total. destruct total_exists as [t [U L]]. apply U. exists l. auto. Qed.

  Lemma total_pos : 0 < total.
  Proof.
    eapply Rlt_le_trans; [|apply (total_bounds [0%Z]); constructor; [simpl; tauto|constructor]].
    simpl. assert (0 < bell 0) by apply exp_pos. lra.
  Qed.

  Lemma total_near d : 0 < d -> exists l, NoDup l /\ total - d <= sum bell l.
  Proof.
    intros Hd. unfold total. destruct total_exists as [t [U L]]. simpl.
    destruct (Classical_Prop.classic (exists l, NoDup l /\ t - d <= sum bell l)) as [H|H]; auto.
    exfalso. assert (t <= t - d); [|lra]. apply L. intros x (l & N & ->). apply Rnot_lt_le. intros K.
    apply H. exists l. split; auto. lra.
  Qed.

  (** ** One number *)

  (** The probability of releasing v when the exact value is q. *)
  Definition gaussian (q v : Z) : R := bell (v - q) / total.

  Lemma gaussian_pos q v : 0 < gaussian q v.
  Proof. apply Rdiv_lt_0_compat; [apply exp_pos|apply total_pos]. Qed.

  Lemma shifted c l : sum (fun v => bell (v - c)) l = sum bell (map (fun v => (v - c)%Z) l).
  Proof. rewrite sum_map. reflexivity. Qed.

  Lemma shift_nodup c l : NoDup l -> NoDup (map (fun v => (v - c)%Z) l).
  Proof. intros N. apply FinFun.Injective_map_NoDup; auto. intros x y. lia. Qed.

  Lemma gaussian_sum q l : sum (gaussian q) l = sum bell (map (fun v => (v - q)%Z) l) / total.
  Proof. rewrite <- shifted. unfold gaussian, Rdiv. rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros; ring. Qed.

  Theorem gaussian_distribution q : distribution (gaussian q).
  Proof.
    pose proof total_pos as T. split.
    - intros v. left. apply gaussian_pos.
    - intros l N. rewrite gaussian_sum. apply (Rmult_le_reg_r total); auto. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. apply total_bounds, shift_nodup, N.
    - intros d Hd. destruct (total_near (d * total)) as (l & N & H); [apply Rmult_lt_0_compat; auto|].
      exists (map (fun v => (v - - q)%Z) l). split; [apply shift_nodup, N|].
      rewrite gaussian_sum, map_map, (map_ext _ (fun v => v)), map_id by (intros; lia).
      apply (Rmult_le_reg_r total); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  Qed.

  (** Order a: p^a / q^(a-1) is the bell around a * q - (a-1) * r, times
      exp(a(a-1) g (q - r)²). *)
  Theorem gaussian_close a q r : (0 < a)%nat ->
    close (Order a) (fun _ => g * (IZR q - IZR r) ^ 2) (gaussian q) (gaussian r).
  Proof.
    intros Ha. apply close_moments. split; [intros v E; pose proof (gaussian_pos r v); lra|]. intros l N.
    set (m := (Z.of_nat a * q - (Z.of_nat a - 1) * r)%Z). set (c := exp (weight_of a * (g * (IZR q - IZR r) ^ 2))).
    pose proof total_pos as T.
    assert (P : forall x n, exp x ^ n = exp (INR n * x)).
    { intros x n. induction n as [|n IHn]; [simpl; rewrite Rmult_0_l, exp_0; reflexivity|].
      rewrite S_INR. simpl. rewrite IHn, <- exp_plus. f_equal. ring. }
    assert (E : forall v, moment a (gaussian q v) (gaussian r v) = c / total * bell (v - m)).
    { intros v. unfold moment, gaussian, bell. destruct a as [|b]; [lia|]. replace (S b - 1)%nat with b by lia.
      unfold Rdiv. rewrite Rinv_mult, Rinv_inv, !Rpow_mult_distr, <- exp_Ropp, !P.
      assert (H : (/ total) ^ S b * total ^ b = / total).
      { simpl. rewrite Rmult_assoc, <- Rpow_mult_distr, Rinv_l by lra. rewrite pow1. ring. }
      match goal with |- ?x * ?y * (?u * ?v) = _ => transitivity ((x * u) * (y * v)); [ring|] end.
      rewrite H, <- exp_plus. unfold c.
      match goal with |- exp ?x * ?y = exp ?u * ?y * exp ?v => transitivity (exp (u + v) * y); [|rewrite exp_plus; ring] end.
      f_equal. f_equal. unfold m, weight_of. rewrite !minus_IZR, !mult_IZR, minus_IZR, <- !INR_IZR_INZ, S_INR. ring. }
    rewrite (sum_ext _ (fun v => c / total * bell (v - m))) by auto. rewrite sum_scale, shifted.
    pose proof (total_bounds _ (shift_nodup m l N)) as B. unfold Rdiv. rewrite Rmult_assoc.
    rewrite <- (Rmult_1_r c) at 2. apply Rmult_le_compat_l; [left; apply exp_pos|].
    rewrite <- (Rinv_l total) by lra. apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat, T|exact B].
  Qed.

  (** ** Vectors *)

  Fixpoint gaussians (qs vs : list Z) : R :=
    match qs, vs with [], [] => 1 | q :: qs, v :: vs => gaussian q v * gaussians qs vs | _, _ => 0 end.

  Fixpoint l2 (qs rs : list Z) : R :=
    match qs, rs with q :: qs, r :: rs => (IZR q - IZR r) ^ 2 + l2 qs rs | _, _ => 0 end.

  Lemma gaussians_distribution qs : distribution (gaussians qs).
  Proof.
    induction qs as [|q qs IH].
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution Z.eq_dec (gaussian q) (fun _ => gaussians qs))].
      + intros []; reflexivity.
      + apply gaussian_distribution.
      + intros _. apply IH.
  Qed.

  Theorem gaussians_close a : (0 < a)%nat -> forall qs rs, length qs = length rs ->
    close (Order a) (fun _ => g * l2 qs rs) (gaussians qs) (gaussians rs).
  Proof.
    intros Ha. induction qs as [|q qs IH]; intros [|r rs] L; try discriminate.
    - simpl l2. rewrite Rmult_0_r. apply (close_ext (Order a) Ha (fun _ => 0) _ ended ended); try (intros []; reflexivity).
      apply (close_same (Order a) Ha), ended_distribution.
    - injection L as L. specialize (IH rs L).
      pose proof (close_sequence (Order a) Ha Z.eq_dec (fun _ => g * (IZR q - IZR r) ^ 2) (fun _ _ => g * l2 qs rs)
        (gaussian q) (gaussian r) (fun _ => gaussians qs) (fun _ => gaussians rs)) as K.
      assert (P : forall qs vs, 0 <= gaussians qs vs) by (intros; apply gaussians_distribution).
      specialize (K (fun v => Rlt_le _ _ (gaussian_pos q v)) (fun v => Rlt_le _ _ (gaussian_pos r v))
        (fun _ => P qs) (fun _ => P rs) (gaussian_close a q r Ha) (fun _ => IH)).
      eapply (close_weaken (Order a) Ha); [apply P|apply P| |].
      2:{ eapply (close_ext (Order a) Ha); [reflexivity|..|exact K]; intros []; reflexivity. }
      intros [|v vs]; simpl l2; [|lra].
      assert (0 <= l2 qs rs); [|pose proof (pow2_ge_0 (IZR q - IZR r)); apply Rmult_le_pos; lra].
      clear. revert rs. induction qs as [|q qs IH]; intros [|r rs]; simpl l2; try lra.
      specialize (IH rs). pose proof (pow2_ge_0 (IZR q - IZR r)). lra.
  Qed.
End Noise.

(** ** Statistics *)

Section Statistics.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** What one record adds, squared and summed over the coordinates. *)
  Definition squared (gs : list (record -> Z)) (x : record) : Z := fold_right (fun g n => (g x * g x + n)%Z) 0%Z gs.

  Lemma cauchy A n s x : (0 <= n -> 0 <= s -> A * A <= n * s -> (A + x) * (A + x) <= (n + 1) * (s + x * x))%Z.
  Proof.
    intros Hn Hs H. assert (K : (2 * A * x <= n * (x * x) + s)%Z); [|nia].
    destruct (Z.eq_dec n 0) as [->|N]; [assert (A = 0)%Z by nia; subst; lia|].
    apply Z.le_sub_0. apply (proj1 (Z.opp_nonneg_nonpos _)). apply (Zmult_le_0_reg_r n); [lia|].
    replace (- (2 * A * x - (n * (x * x) + s)) * n)%Z with ((n * x - A) * (n * x - A) + (n * s - A * A))%Z by ring.
    pose proof (Z.square_nonneg (n * x - A)). lia.
  Qed.

  Lemma sum_squared (h : record -> Z) (P : table) : forall Q : table, (let A := sum_of h P - sum_of h Q in
    A * A <= Z.of_nat (length P + length Q) * (sum_of (fun x => h x * h x) P + sum_of (fun x => h x * h x) Q) /\
    0 <= sum_of (fun x => h x * h x) P + sum_of (fun x => h x * h x) Q)%Z.
  Proof.
    induction P as [|x P IH]; intros Q; cbv zeta.
    - induction Q as [|y Q IH]; cbn [sum_of length plus]; [lia|]. cbn [plus length sum_of] in IH.
      destruct IH as [H1 H2]. pose proof (cauchy _ _ _ (- h y) (Nat2Z.is_nonneg (length Q)) H2 H1).
      split; [|nia]. replace (Z.of_nat (S (length Q))) with (Z.of_nat (length Q) + 1)%Z by lia. nia.
    - specialize (IH Q). cbv zeta in IH. destruct IH as [H1 H2]. cbn [sum_of length plus].
      pose proof (cauchy _ _ _ (h x) (Nat2Z.is_nonneg (length P + length Q)) H2 H1).
      split; [|nia]. replace (Z.of_nat (S (length P + length Q))) with (Z.of_nat (length P + length Q) + 1)%Z by lia. nia.
  Qed.

  Lemma l2_common gs P Q C : l2 (measure gs (P ++ C)) (measure gs (Q ++ C)) <=
    IZR (Z.of_nat (length P + length Q) * (sum_of (squared gs) P + sum_of (squared gs) Q)).
  Proof.
    assert (B : forall h gs P, sum_of (squared (h :: gs)) P = (sum_of (fun x => h x * h x) P + sum_of (squared gs) P)%Z).
    { intros h hs. induction P0 as [|x R IH]; simpl; [reflexivity|]. rewrite IH. simpl. lia. }
    induction gs as [|h gs IH].
    - simpl. assert (Z : forall P, sum_of (squared []) P = 0%Z) by (induction P0; simpl; auto). rewrite !Z.
      rewrite Z.mul_0_r. lra.
    - unfold measure in *. cbn [map l2]. rewrite !B, !sum_of_app.
      destruct (sum_squared h P Q) as [K _]. cbv zeta in K. apply IZR_le in K.
      replace (IZR (sum_of h P + sum_of h C) - IZR (sum_of h Q + sum_of h C)) with (IZR (sum_of h P - sum_of h Q)).
      2:{ rewrite minus_IZR, !plus_IZR. ring. }
      rewrite mult_IZR in K, IH. rewrite !mult_IZR in *. rewrite !plus_IZR in *. simpl pow. nra.
  Qed.

  (** At distance n: n² times what one record can add. *)
  Theorem measure_l2 gs delta2 : (forall x, (squared gs x <= delta2)%Z) -> forall T U,
    l2 (measure gs T) (measure gs U) <= IZR delta2 * INR (distance T U) ^ 2.
  Proof.
    intros H T U. rewrite (measure_bag gs _ _ (split_left T U)), (measure_bag gs U _ (split_right T U)).
    eapply Rle_trans; [apply l2_common|]. unfold distance. set (n := (length (minus T U) + length (minus U T))%nat).
    assert (K : forall P, (sum_of (squared gs) P <= delta2 * Z.of_nat (length P))%Z).
    { induction P as [|x P IH]; [simpl; lia|]. specialize (H x). cbn [sum_of length]. lia. }
    pose proof (K (minus T U)). pose proof (K (minus U T)).
    rewrite INR_IZR_INZ. replace (IZR delta2 * IZR (Z.of_nat n) ^ 2) with (IZR (Z.of_nat n * (delta2 * Z.of_nat n))).
    2:{ rewrite !mult_IZR. ring. }
    apply IZR_le. apply Z.mul_le_mono_nonneg_l; [lia|]. unfold n. lia.
  Qed.
End Statistics.
