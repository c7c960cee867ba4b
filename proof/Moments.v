(** * Moments of private laws

    What pure privacy, or a bounded range, is worth in a concentrated root's book,
    at every integer order.

    - [private_close]: two laws within exp(±e) of each other everywhere are close
      at the loss e * tanh(e/2).  Their moments are at most those of randomised
      response (a chord is above a power), and those go from one order to the
      next by [cosh_step];
    - [range_close]: if the ratio of the laws stays between m and m * exp(r), for
      any m, they are close at r²/8.  One order to the next is Kantorovich's
      inequality: the mean of the ratio times the mean of its inverse is at most
      cosh²(r/2). *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Closeness Fpinq.Hyperbolic.
Import ListNotations.
Open Scope R_scope.

Lemma weight_next a : weight_of (S a) = weight_of a + 2 * INR a.
Proof. unfold weight_of. rewrite S_INR. ring. Qed.

Lemma moment_ratio a p q : (0 < a)%nat -> 0 < q -> moment a p q = q * (p / q) ^ a.
Proof.
  intros Ha Hq. unfold moment, Rdiv. destruct a as [|a]; [lia|]. replace (S a - 1)%nat with a by lia.
  rewrite Rpow_mult_distr. simpl. replace (q * (p * p ^ a * (/ q * (/ q) ^ a))) with (q * / q * (p * p ^ a * (/ q) ^ a)) by ring.
  rewrite Rinv_r by lra. ring.
Qed.

(** ** Pure privacy *)

(** The slope of the chord of r^a between m and M. *)
Fixpoint slope (m M : R) (a : nat) : R := match a with O => 0 | S a => M * slope m M a + m ^ a end.

Lemma slope_nonneg m M a : 0 <= m -> 0 <= M -> 0 <= slope m M a.
Proof.
  intros Hm HM. induction a as [|a IH]; simpl; [lra|]. pose proof (pow_le m a Hm). pose proof (Rmult_le_pos _ _ HM IH). lra.
Qed.

Lemma below_chord m M r a : 0 <= m -> m <= r <= M -> r ^ a <= m ^ a + slope m M a * (r - m).
Proof.
  intros Hm Hr. induction a as [|a IH]; simpl; [lra|].
  assert (H : r * r ^ a <= r * (m ^ a + slope m M a * (r - m))) by (apply Rmult_le_compat_l; lra).
  assert (0 <= slope m M a * ((r - m) * (M - r))).
  { apply Rmult_le_pos; [apply slope_nonneg; lra|]. apply Rmult_le_pos; lra. }
  lra.
Qed.

Section Response.
  Variable e : R.
  Hypothesis e_nonneg : 0 <= e.
  Let h : R := exp (e / 2).
  Let g : R := exp (- (e / 2)).
  Let m : R := exp (- e).
  Let M : R := exp e.

  Lemma halves : h * g = 1 /\ M = h * h /\ m = g * g.
  Proof.
    unfold h, g, M, m. rewrite <- !exp_plus. split; [rewrite Rplus_opp_r; apply exp_0|].
    split; f_equal; field.
  Qed.

  (** Randomised response at e has the moments cosh((a - ½) e) / cosh(e/2). *)
  Lemma response a : (m ^ a + slope m M a * (1 - m)) * (h + g) = M ^ a * g + m ^ a * h.
  Proof.
    destruct halves as (HG & HM & Hm).
    assert (Mg : M * g = h) by (rewrite HM, Rmult_assoc, HG; ring).
    assert (mh : m * h = g) by (rewrite Hm, Rmult_assoc, (Rmult_comm g h), HG; ring).
    induction a as [|a IH]; [simpl; ring|]. simpl. set (P := M ^ a) in *. set (Q := m ^ a) in *. set (s := slope m M a) in *.
    replace ((m * Q + (M * s + Q) * (1 - m)) * (h + g)) with (M * ((Q + s * (1 - m)) * (h + g)) + Q * (h + g - M * h - M * g)) by ring.
    rewrite IH, Mg. replace (m * Q * h) with (Q * (m * h)) by ring. rewrite mh. ring.
  Qed.

  Lemma response_cosh a : M ^ a * g + m ^ a * h = 2 * cosh (INR a * e - e / 2).
  Proof.
    assert (P : forall x n, exp x ^ n = exp (INR n * x)).
    { intros x n. induction n as [|n IHn]; [simpl; rewrite Rmult_0_l, exp_0; reflexivity|].
      rewrite S_INR. simpl. rewrite IHn, <- exp_plus. f_equal. ring. }
    unfold M, m, g, h, cosh. rewrite !P, <- !exp_plus.
    replace (INR a * e + - (e / 2)) with (INR a * e - e / 2) by ring.
    replace (INR a * - e + e / 2) with (- (INR a * e - e / 2)) by ring. field.
  Qed.

  Lemma response_bound a : (0 < a)%nat -> m ^ a + slope m M a * (1 - m) <= exp (weight_of a * (e * tanh (e / 2))).
  Proof.
    intros Ha. assert (C : h + g = 2 * cosh (e / 2)) by (unfold h, g, cosh; field).
    pose proof (cosh_pos (e / 2)) as P.
    apply (Rmult_le_reg_r (h + g)); [rewrite C; lra|]. rewrite response, response_cosh, C.
    assert (K : forall a, cosh (INR (S a) * e - e / 2) <= exp (weight_of (S a) * (e * tanh (e / 2))) * cosh (e / 2)).
    { clear a Ha. induction a as [|a IH].
      - unfold weight_of. simpl. replace (1 * (1 - 1) * (e * tanh (e / 2))) with 0 by ring. rewrite exp_0.
        replace (1 * e - e / 2) with (e / 2) by field. lra.
      - pose proof (cosh_step (INR (S a) * e) (e / 2)) as S1.
        assert (0 <= INR (S a) * e) by (apply Rmult_le_pos; [apply pos_INR|exact e_nonneg]).
        specialize (S1 ltac:(lra) ltac:(lra)).
        replace (INR (S (S a)) * e - e / 2) with (INR (S a) * e + e / 2) by (rewrite (S_INR (S a)); field).
        eapply Rle_trans; [exact S1|]. rewrite (weight_next (S a)), Rmult_plus_distr_r, exp_plus.
        replace (2 * INR (S a) * (e * tanh (e / 2))) with (2 * (INR (S a) * e * tanh (e / 2))) by ring.
        set (X := exp (2 * _)). assert (0 < X) by apply exp_pos.
        replace (exp (weight_of (S a) * (e * tanh (e / 2))) * X * cosh (e / 2)) with
          (exp (weight_of (S a) * (e * tanh (e / 2))) * cosh (e / 2) * X) by ring.
        apply Rmult_le_compat_r; [lra|exact IH]. }
    destruct a as [|a]; [lia|]. specialize (K a). lra.
  Qed.
End Response.

Lemma squeezed x y k : 0 <= k -> (forall d, 0 < d -> x <= y + k * d) -> x <= y.
Proof.
  intros Hk H. apply Rnot_lt_le. intros L. assert (P : 0 < (x - y) / (2 * (k + 1))).
  { apply Rmult_lt_0_compat; [lra|apply Rinv_0_lt_compat; lra]. }
  specialize (H _ P). assert (E : (x - y) / (2 * (k + 1)) * (2 * (k + 1)) = x - y) by (field; lra). nra.
Qed.

Theorem private_close a {A} (dec : forall x y : A, {x = y} + {x <> y}) (p q : A -> R) e : (0 < a)%nat -> 0 <= e ->
  distribution p -> distribution q -> (forall x, p x <= q x * exp e) -> (forall x, q x <= p x * exp e) ->
  close (Order a) (fun _ => e * tanh (e / 2)) p q.
Proof.
  intros Ha He Dp Dq Hpq Hqp. apply close_moments.
  assert (Pp : forall x, 0 <= p x) by apply Dp. assert (Pq : forall x, 0 <= q x) by apply Dq.
  assert (Z : forall x, q x = 0 -> p x = 0).
  { intros x E. pose proof (Hpq x) as K. rewrite E, Rmult_0_l in K. specialize (Pp x). lra. }
  split; [exact Z|]. intros l N.
  set (m := exp (- e)). set (M := exp e). set (b := slope m M a). set (c := m ^ a - b * m).
  assert (Hm : 0 < m) by apply exp_pos. assert (HM : 0 < M) by apply exp_pos.
  assert (Hb : 0 <= b) by (apply slope_nonneg; lra).
  assert (mM : m * M = 1) by (unfold m, M; rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  assert (K : forall x, moment a (p x) (q x) <= c * q x + b * p x).
  { intros x. destruct (Rle_lt_or_eq_dec _ _ (Pq x)) as [Q|Q].
    2:{ rewrite (Z x (eq_sym Q)), <- Q, moment_zero by exact Ha. lra. }
    rewrite moment_ratio by assumption. set (r := p x / q x).
    assert (E : p x = r * q x) by (unfold r; field; lra).
    assert (Hr : m <= r <= M).
    { split; apply (Rmult_le_reg_r (q x)); auto; rewrite <- E.
      - apply (Rmult_le_reg_r M); auto. specialize (Hqp x). fold M in Hqp. replace (m * q x * M) with (q x * (m * M)) by ring.
        rewrite mM. lra.
      - rewrite Rmult_comm. apply Hpq. }
    pose proof (below_chord m M r a ltac:(lra) Hr) as B. fold b in B.
    replace (c * q x + b * p x) with (q x * (m ^ a + b * (r - m))) by (rewrite E; unfold c; ring).
    apply Rmult_le_compat_l; lra. }
  pose proof (response_bound e He a Ha) as R. fold m M b in R.
  eapply Rle_trans; [|exact R]. apply (squeezed _ _ (Rabs c)); [apply Rabs_pos|]. intros d Hd.
  destruct (near_one _ Dq d Hd) as (l1 & N1 & H1).
  set (all := nodup dec (l ++ l1)). assert (Na : NoDup all) by apply NoDup_nodup.
  assert (In1 : forall x, In x l \/ In x l1 -> In x all) by (intros x H; apply nodup_In, in_app_iff; exact H).
  eapply Rle_trans; [apply (sum_covered dec _ l all)|]; auto.
  { intros x. apply moment_nonneg; auto. }
  { intros x Hx Hn. exfalso. apply Hn, In1. auto. }
  eapply Rle_trans; [apply sum_le; intros x _; apply K|]. rewrite sum_plus, !sum_scale.
  assert (Q1 : sum q all <= 1) by (apply Dq, Na). assert (P1 : sum p all <= 1) by (apply Dp, Na).
  assert (Q2 : 1 - d <= sum q all).
  { eapply Rle_trans; [exact H1|]. apply (sum_covered dec); auto. intros x Hx Hn. exfalso. apply Hn, In1. auto. }
  assert (b * sum p all <= b * 1) by (apply Rmult_le_compat_l; assumption).
  assert (c * sum q all <= c + Rabs c * d).
  { unfold Rabs. destruct (Rcase_abs c); nra. }
  unfold c in *. lra.
Qed.

(** ** A bounded range *)

Section Range.
  Context {A : Type}.
  Variables (p q : A -> R) (all : list A) (m r : R).
  Hypothesis m_pos : 0 < m.
  Hypothesis r_nonneg : 0 <= r.
  Hypothesis q_nonneg : forall x, 0 <= q x.
  Hypothesis ratio : forall x, m * q x <= p x <= m * exp r * q x.
  Hypothesis p_one : sum p all = 1.
  Hypothesis q_one : sum q all = 1.

  Let f (a : nat) : R := sum (fun x => q x * (p x / q x) ^ a) all.

  Lemma ratio_zero x : q x = 0 -> p x = 0.
  Proof. intros E. pose proof (ratio x) as [K L]. rewrite E in *. lra. Qed.

  Lemma ratio_range x : 0 < q x -> m <= p x / q x <= m * exp r.
  Proof.
    intros Q. destruct (ratio x) as [K L]. split; apply (Rmult_le_reg_r (q x)); auto; unfold Rdiv;
      rewrite Rmult_assoc, Rinv_l by lra; lra.
  Qed.

  Lemma power_nonneg a x : 0 <= q x * (p x / q x) ^ a.
  Proof.
    destruct (Rle_lt_or_eq_dec _ _ (q_nonneg x)) as [Q|Q]; [|rewrite <- Q; lra].
    apply Rmult_le_pos; [lra|]. apply pow_le. pose proof (ratio_range x Q). lra.
  Qed.

  Lemma f_pos a : 0 < f a.
  Proof.
    assert (L : m ^ a * sum q all <= f a).
    { unfold f. rewrite <- sum_scale. apply sum_le. intros x _. rewrite Rmult_comm.
      destruct (Rle_lt_or_eq_dec _ _ (q_nonneg x)) as [Q|Q]; [|rewrite <- Q; lra].
      apply Rmult_le_compat_l; [lra|]. apply pow_incr. pose proof (ratio_range x Q). lra. }
    rewrite q_one in L. pose proof (pow_lt m a m_pos). lra.
  Qed.

  Lemma kantorovich a : f (S (S a)) * f a <= exp (r ^ 2 / 4) * (f (S a) * f (S a)).
  Proof.
    set (E := exp r). assert (HE : 0 < E) by apply exp_pos. set (mM := m * (m * E)).
    assert (HmM : 0 < mM) by (unfold mM; repeat apply Rmult_lt_0_compat; auto).
    assert (L : f (S (S a)) + mM * f a <= (m + m * E) * f (S a)).
    { unfold f. rewrite <- !sum_scale, <- sum_plus. apply sum_le. intros x _.
      destruct (Rle_lt_or_eq_dec _ _ (q_nonneg x)) as [Q|Q]; [|rewrite <- Q; lra].
      pose proof (ratio_range x Q) as R. fold E in R. simpl. set (s := p x / q x) in *.
      assert (0 <= q x * s ^ a * ((s - m) * (m * E - s))).
      { apply Rmult_le_pos; [apply Rmult_le_pos; [lra|apply pow_le; lra]|apply Rmult_le_pos; lra]. }
      unfold mM. lra. }
    pose proof (f_pos a) as F0. pose proof (f_pos (S a)) as F1. pose proof (f_pos (S (S a))) as F2.
    set (u := f a) in *. set (v := f (S a)) in *. set (w := f (S (S a))) in *.
    assert (G : 4 * mM * (w * u) <= ((m + m * E) * v) * ((m + m * E) * v)).
    { apply Rle_trans with ((w + mM * u) * (w + mM * u)).
      - pose proof (Rle_0_sqr (w - mM * u)) as S. unfold Rsqr in S. lra.
      - assert (0 < mM * u) by (apply Rmult_lt_0_compat; assumption). apply Rmult_le_compat; lra. }
    pose proof (cosh_below (r / 2) ltac:(lra)) as C.
    assert (C2 : cosh (r / 2) * cosh (r / 2) <= exp (r ^ 2 / 4)).
    { replace (r ^ 2 / 4) with ((r / 2) ^ 2 / 2 + (r / 2) ^ 2 / 2) by field. rewrite exp_plus.
      pose proof (cosh_pos (r / 2)). apply Rmult_le_compat; lra. }
    assert (C3 : (m + m * E) * (m + m * E) = 4 * mM * (cosh (r / 2) * cosh (r / 2))).
    { unfold mM, cosh. set (h := exp (r / 2)). set (g := exp (- (r / 2))).
      assert (HG : h * g = 1) by (unfold h, g; rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
      assert (E2 : E = h * h) by (unfold E, h; rewrite <- exp_plus; f_equal; field).
      replace ((m + m * E) * (m + m * E)) with (m * m * ((1 + E) * (1 + E))) by ring.
      replace (4 * (m * (m * E)) * ((h + g) / 2 * ((h + g) / 2))) with (m * m * (E * ((h + g) * (h + g)))) by field.
      f_equal. rewrite E2. replace (h * h * ((h + g) * (h + g))) with ((h * h + h * g) * (h * h + h * g)) by ring.
      rewrite HG. ring. }
    apply (Rmult_le_reg_l (4 * mM)); [lra|].
    eapply Rle_trans; [exact G|]. replace ((m + m * E) * v * ((m + m * E) * v)) with ((m + m * E) * (m + m * E) * (v * v)) by ring.
    rewrite C3. replace (4 * mM * (exp (r ^ 2 / 4) * (v * v))) with (4 * mM * exp (r ^ 2 / 4) * (v * v)) by ring.
    assert (0 < v * v) by (apply Rmult_lt_0_compat; assumption).
    apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra.
  Qed.

  Lemma f_bound a : f a <= exp (weight_of a * (r ^ 2 / 8)).
  Proof.
    assert (F0 : f 0 = 1) by (unfold f; rewrite <- q_one; apply sum_ext; intros; simpl; ring).
    assert (F1 : f 1 = 1).
    { unfold f. rewrite <- p_one. apply sum_ext. intros x _. simpl. destruct (Req_dec (q x) 0) as [E|N].
      - rewrite E, (ratio_zero x E). ring.
      - field. exact N. }
    assert (G : forall b, f (S b) <= exp (INR b * (r ^ 2 / 4)) * f b).
    { induction b as [|b IH]; [rewrite F0, F1; simpl; rewrite Rmult_0_l, exp_0; lra|].
      pose proof (kantorovich b) as K. pose proof (f_pos b) as P0. pose proof (f_pos (S b)) as P1.
      apply (Rmult_le_reg_r (f b)); [exact P0|]. eapply Rle_trans; [exact K|].
      rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus.
      set (X := exp (r ^ 2 / 4)) in *. assert (0 < X) by apply exp_pos.
      replace (exp (INR b * (r ^ 2 / 4)) * X * f (S b) * f b) with (X * f (S b) * (exp (INR b * (r ^ 2 / 4)) * f b)) by ring.
      rewrite <- Rmult_assoc. apply Rmult_le_compat_l; [|exact IH]. left. apply Rmult_lt_0_compat; assumption. }
    induction a as [|a IH].
    - rewrite F0. unfold weight_of. simpl. rewrite !Rmult_0_l, exp_0. lra.
    - eapply Rle_trans; [apply G|]. rewrite weight_next, Rmult_plus_distr_r, exp_plus.
      replace (2 * INR a * (r ^ 2 / 8)) with (INR a * (r ^ 2 / 4)) by field.
      rewrite Rmult_comm. apply Rmult_le_compat_r; [left; apply exp_pos|exact IH].
  Qed.

  Theorem range_close a (dec : forall x y : A, {x = y} + {x <> y}) : (0 < a)%nat -> NoDup all ->
    (forall x, ~ In x all -> p x = 0) -> close (Order a) (fun _ => r ^ 2 / 8) p q.
  Proof.
    intros Ha N Out. apply close_moments. split; [apply ratio_zero|]. intros l Nl.
    assert (E : forall x, moment a (p x) (q x) = q x * (p x / q x) ^ a).
    { intros x. destruct (Rle_lt_or_eq_dec _ _ (q_nonneg x)) as [Q|Q]; [apply moment_ratio; assumption|].
      rewrite (ratio_zero x (eq_sym Q)), moment_zero by exact Ha. rewrite <- Q. ring. }
    rewrite (sum_ext _ _ l (fun x _ => E x)). eapply Rle_trans; [|apply (f_bound a)]. unfold f.
    apply (sum_covered dec); auto; [apply power_nonneg|]. intros x _ Hx.
    rewrite (Out x Hx). unfold Rdiv. rewrite Rmult_0_l, pow_i by exact Ha. ring.
  Qed.
End Range.
