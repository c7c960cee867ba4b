(** * Primitive mechanisms

    Every aggregate is an exact integer, or a short vector of them, computed on
    a bag; noise is added on the integers.  The privacy of a mechanism follows
    from its mass function and from the L1 sensitivity of what it measures. *)

Require Import Reals Lra Lia List Arith ZArith Permutation.
Require Import Fpinq.Bags Fpinq.Probability.
Import ListNotations.
Open Scope R_scope.

(** ** Discrete Laplace noise

    [laplace rate q v] is the probability of releasing v when the exact value
    is q: (1-a)/(1+a) * a^|v-q| with a = exp(-rate).  A query at e on a
    statistic of sensitivity Δ uses rate = e/Δ. *)

Definition decay (rate : R) : R := exp (- rate).

Definition laplace (rate : R) (q v : Z) : R :=
  (1 - decay rate) / (1 + decay rate) * decay rate ^ Z.abs_nat (v - q).

Lemma decay_range rate : 0 < rate -> 0 < decay rate < 1.
Proof. intros H. unfold decay. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing. lra. Qed.

Lemma decay_power rate n : decay rate ^ n = exp (- (rate * INR n)).
Proof.
  induction n as [|n IH]; [simpl; rewrite Rmult_0_r, Ropp_0, exp_0; reflexivity|].
  rewrite S_INR. simpl. rewrite IH. unfold decay. rewrite <- exp_plus. f_equal. ring.
Qed.

Lemma laplace_factor rate : 0 < rate -> 0 < (1 - decay rate) / (1 + decay rate).
Proof.
  intros H. pose proof (decay_range rate H). apply Rmult_lt_0_compat; [lra|]. apply Rinv_0_lt_compat. lra.
Qed.

Lemma laplace_nonneg rate q v : 0 < rate -> 0 <= laplace rate q v.
Proof.
  intros H. unfold laplace. apply Rmult_le_pos; [left; apply laplace_factor, H|].
  left. apply pow_lt. apply decay_range, H.
Qed.

(** Moving the exact value by m changes no probability by more than exp(rate*m). *)
Lemma laplace_private rate q q' v : 0 < rate ->
  laplace rate q v <= laplace rate q' v * exp (rate * IZR (Z.abs (q - q'))).
Proof.
  intros H. unfold laplace. rewrite !decay_power, Rmult_assoc.
  apply Rmult_le_compat_l; [left; apply laplace_factor, H|]. rewrite <- exp_plus. apply exp_mono.
  rewrite !INR_IZR_INZ, !Zabs2Nat.id_abs.
  assert (K : IZR (Z.abs (v - q')) <= IZR (Z.abs (v - q)) + IZR (Z.abs (q - q'))).
  { rewrite <- plus_IZR. apply IZR_le. lia. }
  nra.
Qed.

(** *** Its masses sum to 1 *)

(** All values within n of q. *)
Fixpoint window (q : Z) (n : nat) : list Z :=
  match n with O => [q] | S m => (q + Z.of_nat n)%Z :: (q - Z.of_nat n)%Z :: window q m end.

Lemma window_in q n v : In v (window q n) <-> (Z.abs (v - q) <= Z.of_nat n)%Z.
Proof.
  induction n as [|n IH]; cbn [window In]; [split; [intros [<-|[]]; lia|intros; left; lia]|].
  rewrite IH. lia.
Qed.

Lemma window_nodup q n : NoDup (window q n).
Proof.
  induction n as [|n IH]; cbn [window]; [constructor; [simpl; tauto|constructor]|].
  constructor; [|constructor; [|exact IH]]; cbn [In]; rewrite window_in; lia.
Qed.

Lemma window_mass rate q n : 0 < rate ->
  sum (laplace rate q) (window q n) = 1 - 2 * decay rate ^ S n / (1 + decay rate).
Proof.
  intros H. pose proof (decay_range rate H) as Ha.
  assert (P : forall v k, Z.abs_nat (v - q) = k ->
    laplace rate q v = (1 - decay rate) / (1 + decay rate) * decay rate ^ k).
  { intros v k <-. reflexivity. }
  induction n as [|n IH]; cbn [window sum].
  - rewrite (P q O) by lia. simpl. field. lra.
  - rewrite IH, (P (q + Z.of_nat (S n))%Z (S n)), (P (q - Z.of_nat (S n))%Z (S n)) by lia. simpl. field. lra.
Qed.

Theorem laplace_sums_to_one rate q : 0 < rate -> Un_cv (fun n => sum (laplace rate q) (window q n)) 1.
Proof.
  intros H d Hd. pose proof (decay_range rate H) as Ha.
  destruct (pow_lt_1_zero (decay rate) ltac:(rewrite Rabs_pos_eq; lra) (d / 2) ltac:(lra)) as [N HN].
  exists N. intros n Hn. rewrite window_mass by assumption. unfold R_dist.
  specialize (HN (S n) ltac:(lia)). assert (Hp : 0 < decay rate ^ S n) by (apply pow_lt; lra).
  rewrite Rabs_pos_eq in HN by lra. set (x := decay rate ^ S n) in *.
  replace (1 - 2 * x / (1 + decay rate) - 1) with (- (2 * x / (1 + decay rate))) by ring. rewrite Rabs_Ropp.
  assert (Hi : 0 < / (1 + decay rate) < 1).
  { split; [apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_lt_contravar; lra. }
  unfold Rdiv. rewrite Rabs_pos_eq; [nra|]. apply Rmult_le_pos; lra.
Qed.

Theorem laplace_distribution rate q : 0 < rate -> distribution (laplace rate q).
Proof.
  intros H. pose proof (decay_range rate H) as Ha. split.
  - intros v. apply laplace_nonneg, H.
  - intros l N.
    assert (B : exists n, forall v, In v l -> (Z.abs (v - q) <= Z.of_nat n)%Z).
    { clear N. induction l as [|w l [n IH]]; [exists O; simpl; tauto|]. exists (n + Z.abs_nat (w - q))%nat.
      intros v [<-|Hv]; [lia|]. specialize (IH v Hv). lia. }
    destruct B as [n B]. eapply Rle_trans; [apply (sum_covered Z.eq_dec _ l (window q n))|].
    + intros. apply laplace_nonneg, H.
    + exact N.
    + apply window_nodup.
    + intros v Hv Hn. exfalso. apply Hn, window_in, B, Hv.
    + rewrite window_mass by assumption.
      assert (0 <= 2 * decay rate ^ S n / (1 + decay rate)); [|lra].
      apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; lra]. assert (0 < decay rate ^ S n) by (apply pow_lt; lra).
      lra.
  - intros d Hd. destruct (laplace_sums_to_one rate q H d Hd) as [n Hn]. specialize (Hn n ltac:(lia)).
    exists (window q n). split; [apply window_nodup|]. unfold R_dist in Hn. apply Rabs_def2 in Hn. lra.
Qed.

(** *** Vectors: independent noise on each coordinate *)

Fixpoint noise (rate : R) (qs vs : list Z) : R :=
  match qs, vs with
  | [], [] => 1
  | q :: qs, v :: vs => laplace rate q v * noise rate qs vs
  | _, _ => 0
  end.

(** The L1 distance of two vectors of the same length. *)
Fixpoint l1 (qs rs : list Z) : Z :=
  match qs, rs with q :: qs, r :: rs => (Z.abs (q - r) + l1 qs rs)%Z | _, _ => 0%Z end.

Lemma noise_distribution rate : 0 < rate -> forall qs, distribution (noise rate qs).
Proof.
  intros H. induction qs as [|q qs IH].
  - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
  - eapply distribution_ext; [|apply (sequence_distribution Z.eq_dec (laplace rate q) (fun _ => noise rate qs))].
    + intros []; reflexivity.
    + apply laplace_distribution, H.
    + intros _. exact IH.
Qed.

Theorem noise_private rate : 0 < rate -> forall qs rs vs, length qs = length rs ->
  noise rate qs vs <= noise rate rs vs * exp (rate * IZR (l1 qs rs)).
Proof.
  intros H. induction qs as [|q qs IH]; intros [|r rs] [|v vs] L; simpl in *; try discriminate;
    try (rewrite ?Rmult_0_r, ?Rmult_0_l, ?exp_0; lra).
  rewrite plus_IZR, Rmult_plus_distr_l, exp_plus.
  replace (laplace rate r v * noise rate rs vs * (exp (rate * IZR (Z.abs (q - r))) * exp (rate * IZR (l1 qs rs))))
    with ((laplace rate r v * exp (rate * IZR (Z.abs (q - r)))) * (noise rate rs vs * exp (rate * IZR (l1 qs rs))))
      by ring.
  apply Rmult_le_compat; auto using laplace_nonneg, laplace_private.
  apply noise_distribution, H.
Qed.

(** Noise of a larger scale than needed, say one that was rounded up, is at least
    as private. *)
Corollary noise_rounded rate rate' qs rs vs : 0 < rate' -> rate' <= rate -> length qs = length rs ->
  noise rate' qs vs <= noise rate' rs vs * exp (rate * IZR (l1 qs rs)).
Proof.
  intros H K L. eapply Rle_trans; [apply (noise_private rate' H qs rs vs L)|].
  apply Rmult_le_compat_l; [apply noise_distribution, H|]. apply exp_mono, Rmult_le_compat_r; [|exact K].
  apply IZR_le. clear. revert rs. induction qs as [|q qs IH]; intros [|r rs]; simpl; try lia. specialize (IH rs). lia.
Qed.

(** ** Statistics

    A statistic is a vector of sums over the records: coordinate i adds g_i(x)
    for every record x of the bag.  If the absolute contributions of one record
    are together at most Δ, its L1 sensitivity is Δ. *)

Section Statistics.
  Context {record : Type} {O : Ordered record}.

  Fixpoint sum_of (g : record -> Z) (T : list record) : Z :=
    match T with [] => 0%Z | x :: T => (g x + sum_of g T)%Z end.

  Definition measure (gs : list (record -> Z)) (T : list record) : list Z := map (fun g => sum_of g T) gs.

  Definition contribution (gs : list (record -> Z)) (x : record) : Z :=
    fold_right (fun g n => (Z.abs (g x) + n)%Z) 0%Z gs.

  Lemma sum_of_app g T U : sum_of g (T ++ U) = (sum_of g T + sum_of g U)%Z.
  Proof. induction T; simpl; lia. Qed.

  Lemma sum_of_bag g T U : Permutation T U -> sum_of g T = sum_of g U.
  Proof. induction 1; simpl; lia. Qed.

  Lemma measure_bag gs T U : Permutation T U -> measure gs T = measure gs U.
  Proof. intros H. apply map_ext. intros g. apply sum_of_bag, H. Qed.

  (** Together, the coordinates move by at most what each differing record
      contributes. *)
  Lemma l1_common gs P Q C : (l1 (measure gs (P ++ C)) (measure gs (Q ++ C)) <=
    sum_of (contribution gs) P + sum_of (contribution gs) Q)%Z.
  Proof.
    assert (A : forall g P, (Z.abs (sum_of g P) <= sum_of (fun x => Z.abs (g x)) P)%Z).
    { intros g. induction P0; simpl; lia. }
    assert (B : forall g gs P, sum_of (contribution (g :: gs)) P =
      (sum_of (fun x => Z.abs (g x)) P + sum_of (contribution gs) P)%Z).
    { intros g hs. induction P0 as [|x R IH]; simpl; [reflexivity|]. rewrite IH. simpl. lia. }
    induction gs as [|g gs IH].
    - simpl. assert (Z : forall P, sum_of (contribution []) P = 0%Z) by (induction P0; simpl; auto). rewrite !Z. lia.
    - unfold measure in *. cbn [map l1]. rewrite !B, !sum_of_app. pose proof (A g P). pose proof (A g Q). lia.
  Qed.

  Theorem measure_sensitivity gs delta : (forall x, (contribution gs x <= delta)%Z) ->
    forall T U, (l1 (measure gs T) (measure gs U) <= delta * Z.of_nat (distance T U))%Z.
  Proof.
    intros H T U. rewrite (measure_bag gs _ _ (split_left T U)), (measure_bag gs U _ (split_right T U)).
    eapply Z.le_trans; [apply l1_common|]. unfold distance.
    assert (K : forall P, (sum_of (contribution gs) P <= delta * Z.of_nat (length P))%Z).
    { induction P as [|x P IH]; [simpl; lia|]. specialize (H x). cbn [sum_of length]. lia. }
    pose proof (K (minus T U)). pose proof (K (minus U T)). lia.
  Qed.

  Definition clamp (lo hi x : Z) : Z := Z.max lo (Z.min hi x).
End Statistics.

(** ** Choosing among candidates: the exponential mechanism

    Candidate i is chosen with probability proportional to exp(rate*s_i/2),
    where no score s_i moves by more than Δ per record and rate = e/Δ. *)

Section Choose.
  Variable rate : R.
  Hypothesis rate_pos : 0 < rate.

  Definition weight (s : Z) : R := exp (rate / 2 * IZR s).
  Definition total_weight (scores : list Z) : R := sum weight scores.

  (** The candidate is named by its position. *)
  Definition choose (scores : list Z) (i : nat) : R :=
    match nth_error scores i with Some s => weight s / total_weight scores | None => 0 end.

  Lemma total_weight_pos scores : scores <> [] -> 0 < total_weight scores.
  Proof.
    destruct scores as [|s scores]; [congruence|]. intros _. unfold total_weight. simpl.
    assert (0 <= sum weight scores) by (apply sum_nonneg; intros; left; apply exp_pos).
    pose proof (exp_pos (rate / 2 * IZR s)). unfold weight at 1. lra.
  Qed.

  Lemma choose_distribution scores : scores <> [] -> distribution (choose scores).
  Proof.
    intros H. pose proof (total_weight_pos scores H) as Hp.
    apply (finite_distribution Nat.eq_dec _ (seq 0 (length scores))).
    - intros i. unfold choose. destruct (nth_error scores i); [|lra].
      apply Rmult_le_pos; left; [apply exp_pos|apply Rinv_0_lt_compat, Hp].
    - apply seq_NoDup.
    - intros i Hi. unfold choose. rewrite (proj2 (nth_error_None scores i)); [reflexivity|].
      rewrite in_seq in Hi. lia.
    - assert (K : forall T l, sum (fun i => match nth_error l i with Some s => weight s / T | None => 0 end)
        (seq 0 (length l)) = sum weight l / T).
      { intros T l. induction l as [|s l IH]; simpl; [unfold Rdiv; ring|].
        rewrite <- seq_shift, sum_map. cbn [nth_error]. rewrite IH. unfold Rdiv. ring. }
      unfold choose. rewrite K. fold (total_weight scores). field. lra.
  Qed.

  (** Neighbouring scores, each within Δ. *)
  Definition near (delta : Z) : list Z -> list Z -> Prop := Forall2 (fun s t => (Z.abs (s - t) <= delta)%Z).

  Lemma near_sym delta ss ts : near delta ss ts -> near delta ts ss.
  Proof. induction 1; constructor; auto. lia. Qed.

  Lemma weight_near delta s t : (Z.abs (s - t) <= delta)%Z -> weight s <= weight t * exp (rate / 2 * IZR delta).
  Proof.
    intros H. unfold weight. rewrite <- exp_plus. apply exp_mono.
    assert (IZR s <= IZR t + IZR delta) by (rewrite <- plus_IZR; apply IZR_le; lia). nra.
  Qed.

  Lemma total_weight_near delta ss ts : near delta ss ts ->
    total_weight ss <= total_weight ts * exp (rate / 2 * IZR delta).
  Proof.
    induction 1; unfold total_weight in *; simpl; [lra|]. rewrite Rmult_plus_distr_r.
    apply Rplus_le_compat; auto using weight_near.
  Qed.

  Theorem choose_private delta ss ts i : near delta ss ts -> choose ss i <= choose ts i * exp (rate * IZR delta).
  Proof.
    intros H. unfold choose. destruct (nth_error ss i) as [s|] eqn:Es.
    - assert (K : exists t, nth_error ts i = Some t /\ (Z.abs (s - t) <= delta)%Z).
      { revert i Es. induction H as [|s' t' ss ts Hst H IH]; intros [|i] Es; simpl in *; try discriminate.
        - injection Es as ->. eauto.
        - eauto. }
      destruct K as (t & -> & Hst).
      assert (Hs : 0 < total_weight ss) by (apply total_weight_pos; intros ->; destruct i; discriminate).
      assert (Ht : 0 < total_weight ts) by (apply total_weight_pos; intros ->; inversion H; subst; destruct i;
        discriminate).
      pose proof (weight_near delta s t Hst) as W.
      pose proof (total_weight_near delta ts ss (near_sym delta ss ts H)) as T.
      replace (rate * IZR delta) with (rate / 2 * IZR delta + rate / 2 * IZR delta) by field. rewrite exp_plus.
      set (c := exp (rate / 2 * IZR delta)) in *. assert (Hc : 0 < c) by apply exp_pos.
      apply Rmult_le_reg_r with (total_weight ss * total_weight ts); [apply Rmult_lt_0_compat; assumption|].
      replace (weight s / total_weight ss * (total_weight ss * total_weight ts)) with (weight s * total_weight ts)
        by (field; lra).
      replace (weight t / total_weight ts * (c * c) * (total_weight ss * total_weight ts))
        with ((weight t * c) * (total_weight ss * c)) by (field; lra).
      apply Rmult_le_compat; try lra. left. apply exp_pos.
    - assert (K : nth_error ts i = None).
      { assert (L : length ss = length ts) by (clear Es; induction H; simpl; auto).
        apply nth_error_None. apply nth_error_None in Es. lia. }
      rewrite K. lra.
  Qed.
End Choose.
