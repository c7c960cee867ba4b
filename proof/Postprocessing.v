(** * Functions of what is drawn

    Of an outcome that was drawn something is shown: any function of it.  Its law
    is the image of the first one; the probability of a value is that of all
    outcomes that have it, however many there are.  A function of an outcome is
    as close as the outcome itself: [image_close], at [Worst] and at every
    integer order.  Nothing is assumed of the function. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Closeness Fpinq.Moments.
Import ListNotations.
Open Scope R_scope.

(** ** The probability of an event *)

Section Chance.
  Context {A : Type}.
  Variables (p : A -> R) (event : A -> Prop).

  Let sums (r : R) : Prop := exists l, NoDup l /\ (forall x, In x l -> event x) /\ r = sum p l /\ r <= 1.

  Lemma sums_exist : {r : R | is_lub sums r}.
  Proof.
    apply completeness.
    - exists 1. intros r K. destruct K as (l & _ & _ & _ & H). exact H.
    - exists 0, []. repeat split; [constructor|intros x []|lra].
  Qed.

  Definition chance : R := proj1_sig sums_exist.

  Hypothesis p_one : forall l, NoDup l -> sum p l <= 1.

  Lemma chance_above l : NoDup l -> (forall x, In x l -> event x) -> sum p l <= chance.
  Proof. intros N H. apply (proj1 (proj2_sig sums_exist)). exists l. auto. Qed.

  Lemma chance_nonneg : 0 <= chance.
  Proof. apply (chance_above []); [constructor|intros x []]. Qed.

  Lemma chance_below c : (forall l, NoDup l -> (forall x, In x l -> event x) -> sum p l <= c) -> chance <= c.
  Proof.
    intros H. apply (proj2 (proj2_sig sums_exist)). intros x (l & N & Hl & -> & _). auto.
  Qed.

  Lemma chance_at_most_one : chance <= 1.
  Proof. apply chance_below. auto. Qed.

  Lemma chance_near d : 0 < d -> exists l, NoDup l /\ (forall x, In x l -> event x) /\ chance - d <= sum p l.
  Proof.
    intros Hd. apply Classical_Prop.NNPP. intros N. assert (chance <= chance - d); [|lra]. apply chance_below. intros l Nl Hl.
    apply Rnot_lt_le. intros K. apply N. exists l. repeat split; auto. lra.
  Qed.
End Chance.

Lemma chance_ext {A} (p q : A -> R) (event event' : A -> Prop) : (forall l, NoDup l -> sum p l <= 1) ->
  (forall l, NoDup l -> sum q l <= 1) -> (forall x, p x = q x) -> (forall x, event x <-> event' x) ->
  chance p event = chance q event'.
Proof.
  intros P Q E V. apply Rle_antisym; apply chance_below; auto; intros l N H.
  - rewrite (sum_ext p q) by auto. apply chance_above; auto. intros x Hx. apply V, H, Hx.
  - rewrite <- (sum_ext p q) by auto. apply chance_above; auto. intros x Hx. apply V, H, Hx.
Qed.

(** ** Sums by the values of a function *)

Section Image.
  Context {A B : Type} (dec : forall x y : B, {x = y} + {x <> y}).
  Variable f : A -> B.

  Definition of (y : B) (l : list A) : list A := filter (fun x => if dec (f x) y then true else false) l.

  Lemma of_in y l x : In x (of y l) <-> In x l /\ f x = y.
  Proof. unfold of. rewrite filter_In. destruct (dec (f x) y); intuition congruence. Qed.

  Lemma sum_by (g : A -> R) l ys : NoDup ys -> (forall x, In x l -> In (f x) ys) -> sum g l = sum (fun y => sum g (of y l)) ys.
  Proof.
    intros N. induction l as [|x l IH]; intros H; [symmetry; apply sum_zero; reflexivity|].
    rewrite (sum_ext (fun y => sum g (of y (x :: l))) (fun y => (if dec (f x) y then g x else 0) + sum g (of y l))).
    - rewrite sum_plus, <- IH by (intros z Hz; apply H; right; exact Hz).
      rewrite (sum_indicator dec (fun _ => g x) (f x) ys N (H x (or_introl eq_refl))). reflexivity.
    - intros y _. unfold of. simpl. destruct (dec (f x) y); simpl; lra.
  Qed.

  (** ** The image *)

  Definition image (p : A -> R) (y : B) : R := chance p (fun x => f x = y).

  Section OneLaw.
    Variable p : A -> R.
    Hypothesis P : distribution p.

    Lemma image_nonneg y : 0 <= image p y.
    Proof. apply chance_nonneg, P. Qed.

    (** Finitely many outcomes that have nearly all of what finitely many values have. *)
    Lemma gathered ys d : NoDup ys -> 0 < d -> exists l, NoDup l /\ (forall x, In x l -> In (f x) ys) /\
      forall y, In y ys -> image p y - d <= sum p (of y l).
    Proof.
      intros N Hd. induction N as [|y ys Hy N (l & Nl & Hl & Sl)].
      - exists []. repeat split; [constructor|intros x []|intros y []].
      - destruct (chance_near p (fun x => f x = y) d Hd) as (k & Nk & Hk & Sk). exists (k ++ l). split; [|split].
        + apply nodup_app; auto. intros x Hx Hx'. apply Hy. rewrite <- (Hk x Hx). apply Hl, Hx'.
        + intros x Hx. apply in_app_or in Hx. destruct Hx as [Hx|Hx]; [left; symmetry; apply Hk, Hx|right; apply Hl, Hx].
        + assert (E : forall z, of z (k ++ l) = of z k ++ of z l).
          { intros z. unfold of. clear. induction k as [|x k IH]; simpl; auto. destruct (dec (f x) z); simpl; rewrite IH; auto. }
          intros z [<-|Hz]; rewrite E, sum_app.
          * assert (K : of y k = k).
            { unfold of. clear - Hk. induction k as [|x k IH]; simpl; auto. destruct (dec (f x) y) as [|C].
              - rewrite IH; auto. intros w Hw. apply Hk. right. exact Hw.
              - exfalso. apply C, Hk. left. reflexivity. }
            rewrite K. pose proof (sum_nonneg p (of y l) (nonnegative _ P)). unfold image in *. lra.
          * pose proof (sum_nonneg p (of z k) (nonnegative _ P)). specialize (Sl z Hz). lra.
    Qed.

    Lemma image_distribution : distribution (image p).
    Proof.
      split; [apply image_nonneg|..].
      - intros ys N. apply (squeezed _ _ (INR (length ys)) (pos_INR _)). intros d Hd.
        destruct (gathered ys d N Hd) as (l & Nl & Hl & Sl). pose proof (at_most_one _ P l Nl) as U.
        rewrite (sum_by p l ys N Hl) in U. apply Rle_trans with (sum (fun y => sum p (of y l) + d) ys).
        + apply sum_le. intros y Hy. specialize (Sl y Hy). lra.
        + rewrite sum_plus. assert (E : sum (fun _ : B => d) ys = INR (length ys) * d); [|lra].
          clear. induction ys as [|y ys IH]; [simpl; ring|]. change (length (y :: ys)) with (S (length ys)).
          rewrite S_INR. cbn [sum]. rewrite IH. ring.
      - intros d Hd. destruct (near_one _ P d Hd) as (l & N & H). exists (nodup dec (map f l)).
        assert (Nn : NoDup (nodup dec (map f l))) by apply NoDup_nodup. split; [exact Nn|]. eapply Rle_trans; [exact H|].
        rewrite (sum_by p l _ Nn) by (intros x Hx; apply nodup_In, in_map, Hx). apply sum_le. intros y _.
        apply chance_above; [apply P|apply NoDup_filter, N|]. intros x Hx. apply of_in in Hx. tauto.
    Qed.
  End OneLaw.
End Image.

(** What is at least a part c of a law stays so. *)
Lemma image_part {A B} (f : A -> B) c (p p' : A -> R) y : distribution p -> distribution p' ->
  (forall x, c * p' x <= p x) -> c * image f p' y <= image f p y.
Proof.
  intros P P' H. destruct (Rle_lt_dec c 0) as [N|C].
  - pose proof (image_nonneg f p P y). pose proof (image_nonneg f p' P' y). assert (c * image f p' y <= 0); [|lra].
    replace 0 with (0 * image f p' y) by ring. apply Rmult_le_compat_r; assumption.
  - apply (Rmult_le_reg_l (/ c)); [apply Rinv_0_lt_compat, C|]. rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l by lra.
    apply chance_below. intros l N Hl. apply (Rmult_le_reg_l c); [exact C|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
    rewrite <- sum_scale. eapply Rle_trans; [apply sum_le; intros x _; apply H|]. apply chance_above; [apply P|exact N|exact Hl].
Qed.

Lemma image_ext {A B} (f : A -> B) (p q : A -> R) y : distribution p -> (forall x, p x = q x) -> image f p y = image f q y.
Proof.
  intros P E. apply chance_ext; [apply P|apply (distribution_ext p q E P)|exact E|tauto].
Qed.

(** ** Moments of sums *)

Lemma tangent n x m : 0 <= x -> 0 <= m -> INR (S n) * m ^ n * (x - m) + m ^ S n <= x ^ S n.
Proof.
  intros X M. induction n as [|n IH]; [simpl; lra|].
  assert (K : x * (INR (S n) * m ^ n * (x - m) + m ^ S n) <= x * x ^ S n) by (apply Rmult_le_compat_l; assumption).
  change (x ^ S (S n)) with (x * x ^ S n). eapply Rle_trans; [|exact K]. rewrite (S_INR (S n)).
  assert (0 <= INR (S n) * m ^ n * ((x - m) * (x - m))).
  { apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR|apply pow_le, M]|apply Rle_0_sqr]. }
  simpl (m ^ S (S n)). simpl (m ^ S n). lra.
Qed.

Lemma moment_plus a p q p' q' : (0 < a)%nat -> 0 <= p -> 0 <= q -> 0 <= p' -> 0 <= q' ->
  (q = 0 -> p = 0) -> (q' = 0 -> p' = 0) -> moment a (p + p') (q + q') <= moment a p q + moment a p' q'.
Proof.
  intros Ha P Q P' Q' Z Z'. destruct (Rle_lt_or_eq_dec _ _ Q) as [K|E].
  2:{ rewrite (Z (eq_sym E)), <- E, !Rplus_0_l, moment_zero by exact Ha. lra. }
  destruct (Rle_lt_or_eq_dec _ _ Q') as [K'|E].
  2:{ rewrite (Z' (eq_sym E)), <- E, !Rplus_0_r, (moment_zero a) by exact Ha. lra. }
  rewrite !moment_ratio by (assumption || lra). destruct a as [|n]; [lia|].
  set (m := (p + p') / (q + q')). assert (M : 0 <= m) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (U : 0 <= p / q) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (U' : 0 <= p' / q') by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  pose proof (Rmult_le_compat_l q _ _ Q (tangent n (p / q) m U M)) as T.
  pose proof (Rmult_le_compat_l q' _ _ Q' (tangent n (p' / q') m U' M)) as T'.
  assert (E : q * (p / q - m) + q' * (p' / q' - m) = 0) by (unfold m; field; lra).
  assert (F : q * (INR (S n) * m ^ n * (p / q - m) + m ^ S n) + q' * (INR (S n) * m ^ n * (p' / q' - m) + m ^ S n) =
    INR (S n) * m ^ n * (q * (p / q - m) + q' * (p' / q' - m)) + (q + q') * m ^ S n) by ring.
  rewrite E in F. lra.
Qed.

Lemma moment_sum a {A} (p q : A -> R) l : (0 < a)%nat -> (forall x, 0 <= p x) -> (forall x, 0 <= q x) ->
  (forall x, q x = 0 -> p x = 0) -> moment a (sum p l) (sum q l) <= sum (fun x => moment a (p x) (q x)) l.
Proof.
  intros Ha P Q Z. induction l as [|x l IH]; simpl; [rewrite moment_zero by exact Ha; lra|].
  eapply Rle_trans; [apply moment_plus; auto using sum_nonneg|].
  - intros E. apply sum_zero. intros y Hy. apply Z. clear IH. induction l as [|w l IH]; [contradiction|]. simpl in E.
    pose proof (Q w). pose proof (sum_nonneg q l Q). destruct Hy as [<-|Hy]; [lra|apply IH; [lra|exact Hy]].
  - lra.
Qed.

(** In the second argument moments fall, in the first they rise, at most so fast. *)
Lemma moment_falls a p q q' : (0 < a)%nat -> 0 <= p -> 0 < q <= q' -> moment a p q' <= moment a p q.
Proof.
  intros Ha P Q. unfold moment. apply Rmult_le_compat_l; [apply pow_le, P|]. apply pow_incr. split.
  - left. apply Rinv_0_lt_compat. lra.
  - apply Rinv_le_contravar; lra.
Qed.

Lemma power_rises n x y : 0 <= y <= x -> x <= 1 -> x ^ n <= y ^ n + INR n * (x - y).
Proof.
  intros H X. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR. simpl.
  assert (0 <= y ^ n <= 1) by (split; [apply pow_le; lra|rewrite <- (pow1 n); apply pow_incr; lra]).
  assert (0 <= INR n * (x - y)) by (apply Rmult_le_pos; [apply pos_INR|lra]).
  assert (x * x ^ n <= x * (y ^ n + INR n * (x - y))) by (apply Rmult_le_compat_l; lra).
  assert (x * (INR n * (x - y)) <= 1 * (INR n * (x - y))) by (apply Rmult_le_compat_r; lra).
  assert ((x - y) * y ^ n <= (x - y) * 1) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** ** The theorem *)

Theorem image_close {A B} (dec : forall x y : B, {x = y} + {x <> y}) (f : A -> B) o r (p q : A -> R) : proper o ->
  distribution p -> distribution q -> close o (fun _ => r) p q -> close o (fun _ => r) (image f p) (image f q).
Proof.
  intros Ho P Q C. destruct o as [|a].
  - intros y. apply chance_below. intros l N H. simpl in C. apply Rle_trans with (sum q l * exp r).
    + rewrite Rmult_comm, <- sum_scale. apply sum_le. intros x _. rewrite Rmult_comm. apply C.
    + apply Rmult_le_compat_r; [left; apply exp_pos|]. apply chance_above; [apply Q|exact N|exact H].
  - apply close_moments in C. destruct C as [Z M]. apply close_moments. simpl in Ho.
    assert (Z' : forall y, image f q y = 0 -> image f p y = 0).
    { intros y E. apply Rle_antisym; [|apply image_nonneg, P]. apply chance_below. intros l N H. apply Req_le, sum_zero.
      intros x Hx. apply Z. apply Rle_antisym; [|apply Q]. rewrite <- E.
      replace (q x) with (sum q [x]) by (simpl; ring). apply chance_above; [apply Q|constructor; [intros []|constructor]|].
      intros w [<-|[]]. apply H, Hx. }
    split; [exact Z'|]. intros ys N.
    set (K := sum (fun y => INR a * (/ image f q y) ^ (a - 1)) ys).
    assert (I : forall y, 0 <= (/ image f q y) ^ (a - 1)).
    { intros y. apply pow_le. destruct (Rle_lt_or_eq_dec _ _ (image_nonneg f q Q y)) as [H|<-];
        [left; apply Rinv_0_lt_compat, H|rewrite Rinv_0; lra]. }
    assert (HK : 0 <= K) by (apply sum_nonneg; intros y; apply Rmult_le_pos; [apply pos_INR|apply I]).
    apply (squeezed _ _ K HK). intros d Hd.
    destruct (gathered dec f p P ys d N Hd) as (l & Nl & Hl & Sl). specialize (M l Nl).
    rewrite (sum_by dec f (fun x => moment a (p x) (q x)) l ys N Hl) in M.
    apply Rle_trans with (sum (fun y => sum (fun x => moment a (p x) (q x)) (of dec f y l) +
      d * (INR a * (/ image f q y) ^ (a - 1))) ys).
    2:{ rewrite sum_plus, sum_scale. fold K. lra. }
    apply sum_le. intros y Hy. specialize (Sl y Hy). set (k := of dec f y l) in *.
    assert (Nk : NoDup k) by apply NoDup_filter, Nl. assert (Hk : forall x, In x k -> f x = y) by (intros x Hx; apply of_in in Hx; tauto).
    pose proof (chance_above p (fun x => f x = y) (at_most_one _ P) k Nk Hk) as SP. fold (image f p y) in SP.
    pose proof (chance_above q (fun x => f x = y) (at_most_one _ Q) k Nk Hk) as SQ. fold (image f q y) in SQ.
    pose proof (sum_nonneg p k (nonnegative _ P)) as P0. pose proof (sum_nonneg q k (nonnegative _ Q)) as Q0.
    assert (U : image f p y <= 1) by apply chance_at_most_one, P.
    pose proof (power_rises a (image f p y) (sum p k) ltac:(lra) U) as R.
    apply Rle_trans with (moment a (sum p k) (image f q y) + d * (INR a * (/ image f q y) ^ (a - 1))).
    + unfold moment. replace (sum p k ^ a * (/ image f q y) ^ (a - 1) + d * (INR a * (/ image f q y) ^ (a - 1))) with
        ((sum p k ^ a + INR a * d) * (/ image f q y) ^ (a - 1)) by ring. apply Rmult_le_compat_r; [apply I|].
      assert (INR a * (image f p y - sum p k) <= INR a * d) by (apply Rmult_le_compat_l; [apply pos_INR|lra]). lra.
    + apply Rplus_le_compat_r. destruct (Rle_lt_or_eq_dec _ _ Q0) as [K0|E0].
      * eapply Rle_trans; [apply (moment_falls a _ (sum q k)); [exact Ho|exact P0|lra]|].
        apply moment_sum; auto; [apply P|apply Q].
      * assert (E : sum p k = 0).
        { apply sum_zero. intros x Hx. apply Z. clear - E0 Hx Q. induction k as [|w k IH]; [contradiction|]. simpl in E0.
          pose proof (nonnegative _ Q w). pose proof (sum_nonneg q k (nonnegative _ Q)). destruct Hx as [<-|Hx]; [lra|apply IH; [lra|exact Hx]]. }
        rewrite E, moment_zero by exact Ho. apply sum_nonneg. intros x. apply moment_nonneg; [apply P|apply Q].
Qed.
