(** * How close two laws are

    What an observer sees follows one law on one database and another law on a
    neighbour.  A *loss* says of each outcome how far the two may be apart
    there.  They are close

    - at [Worst], if every outcome is at most exp(loss) times as likely under the
      first law as under the second: pure privacy;
    - at [Order a], a = 1, 2, …, if the sum of p^a / q^(a-1) * exp(-a(a-1) * loss)
      is at most 1, and nothing is possible under the first law that is not under
      the second: for a constant loss r, the Rényi divergence of order a is at
      most a * r, as concentrated privacy asks.

    Either way closeness composes: losses of steps taken one after the other add
    up along every trace, whatever was chosen when.  So the accounting that stays
    within a budget is proved once, in [Books], for both.

    A law that is r-close at one integer order is (ε, δ)-close: [convert]. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Bags Fpinq.Probability.
Import ListNotations.
Open Scope R_scope.

(** ** Moments *)

(** p^a / q^(a-1), the summand of the Rényi divergence of order a.  In Coq 1/0 is
    0: it says nothing where q is 0. *)
Definition moment (a : nat) (p q : R) : R := p ^ a * (/ q) ^ (a - 1).

Definition weight_of (a : nat) : R := INR a * (INR a - 1).

Lemma weight_nonneg a : 0 <= weight_of a.
Proof.
  unfold weight_of. destruct a as [|a]; [simpl; lra|]. rewrite S_INR. pose proof (pos_INR a).
  apply Rmult_le_pos; lra.
Qed.

Lemma moment_nonneg a p q : 0 <= p -> 0 <= q -> 0 <= moment a p q.
Proof.
  intros P Q. unfold moment. apply Rmult_le_pos; apply pow_le; auto.
  destruct (Rle_lt_or_eq_dec _ _ Q) as [K|<-]; [left; apply Rinv_0_lt_compat, K|rewrite Rinv_0; lra].
Qed.

Lemma moment_mult a p q p' q' : moment a (p * p') (q * q') = moment a p q * moment a p' q'.
Proof. unfold moment. rewrite Rinv_mult, !Rpow_mult_distr. ring. Qed.

Lemma moment_zero a q : (0 < a)%nat -> moment a 0 q = 0.
Proof. intros H. unfold moment. rewrite pow_i by exact H. ring. Qed.

Lemma moment_same a p : (0 < a)%nat -> moment a p p = p.
Proof.
  intros H. unfold moment. destruct a as [|a]; [lia|]. replace (S a - 1)%nat with a by lia. simpl.
  destruct (Req_dec p 0) as [->|N]; [ring|].
  rewrite Rmult_assoc, <- Rpow_mult_distr, Rinv_r, pow1 by exact N. ring.
Qed.

(** ** Closeness *)

Inductive order := Worst | Order (a : nat).

Definition proper (o : order) : Prop := match o with Worst => True | Order a => (0 < a)%nat end.

Definition close (o : order) {A} (loss : A -> R) (p q : A -> R) : Prop :=
  match o with
  | Worst => forall x, p x <= q x * exp (loss x)
  | Order a => (forall x, q x = 0 -> p x = 0) /\
      forall l, NoDup l -> sum (fun x => moment a (p x) (q x) * exp (- (weight_of a * loss x))) l <= 1
  end.

Section Facts.
  Variable o : order.
  Hypothesis o_proper : proper o.

  (** A law is close to itself. *)
  Lemma close_same {A} (p : A -> R) : distribution p -> close o (fun _ => 0) p p.
  Proof.
    intros D. destruct o as [|a]; simpl in *.
    - intros x. rewrite exp_0. lra.
    - split; [auto|]. intros l N. rewrite (sum_ext _ p); [apply D, N|]. intros x _.
      rewrite (moment_same a (p x) o_proper), Rmult_0_r, Ropp_0, exp_0. ring.
  Qed.

  Lemma close_weaken {A} (loss more : A -> R) p q : (forall x, 0 <= p x) -> (forall x, 0 <= q x) ->
    (forall x, loss x <= more x) -> close o loss p q -> close o more p q.
  Proof.
    intros P Q L. destruct o as [|a]; simpl.
    - intros H x. eapply Rle_trans; [apply H|]. apply Rmult_le_compat_l; auto. apply exp_mono, L.
    - intros [H0 H]. split; [exact H0|]. intros l N. eapply Rle_trans; [apply sum_le|apply (H l N)]. intros x _.
      apply Rmult_le_compat_l; [apply moment_nonneg; auto|]. apply exp_mono, Ropp_le_contravar.
      apply Rmult_le_compat_l; [apply weight_nonneg|apply L].
  Qed.

  Lemma close_ext {A} (loss loss' : A -> R) p q p' q' : (forall x, loss x = loss' x) -> (forall x, p x = p' x) ->
    (forall x, q x = q' x) -> close o loss p q -> close o loss' p' q'.
  Proof.
    intros L P Q. destruct o as [|a]; simpl.
    - intros H x. rewrite <- L, <- P, <- Q. apply H.
    - intros [H0 H]. split; [intros x; rewrite <- P, <- Q; apply H0|]. intros l N.
      rewrite <- (sum_ext (fun x => moment a (p x) (q x) * exp (- (weight_of a * loss x)))); auto.
      intros x _. rewrite <- L, <- P, <- Q. reflexivity.
  Qed.

  (** Renaming outcomes; names that name nothing have probability 0. *)
  Lemma close_rename {A B} (name : A -> B) (inverse : B -> option A) (r : R) (p q : A -> R) :
    (forall b a, inverse b = Some a -> b = name a) -> close o (fun _ => r) p q ->
    close o (fun _ => r) (fun b => match inverse b with Some a => p a | None => 0 end)
      (fun b => match inverse b with Some a => q a | None => 0 end).
  Proof.
    intros E. destruct o as [|a]; simpl in *.
    - intros H b. destruct (inverse b); [apply H|lra].
    - intros [H0 H]. split; [intros b; destruct (inverse b); auto|]. intros l N.
      set (c := exp (- (weight_of a * r))) in *.
      set (as_ := flat_map (fun b => match inverse b with Some x => [x] | None => [] end) l).
      assert (S : sum (fun b => moment a (match inverse b with Some a => p a | None => 0 end)
        (match inverse b with Some a => q a | None => 0 end) * c) l = sum (fun x => moment a (p x) (q x) * c) as_).
      { unfold as_. clear N as_. induction l as [|b l IH]; simpl; auto. rewrite sum_app, <- IH.
        destruct (inverse b); simpl; [ring|]. rewrite moment_zero by exact o_proper. ring. }
      rewrite S. apply H. unfold as_. clear S as_. induction N as [|b l Hb N IH]; simpl; [constructor|].
      destruct (inverse b) as [x|] eqn:Ex; simpl; auto. constructor; auto.
      intros K. apply in_flat_map in K. destruct K as (b' & Hb' & K).
      destruct (inverse b') as [x'|] eqn:Ex'; [|contradiction]. destruct K as [->|[]]. apply E in Ex, Ex'. congruence.
  Qed.

  (** First one outcome, then a sequence whose law may depend on it: the losses
      add up along the way. *)
  Lemma close_sequence {A} (dec : forall x y : A, {x = y} + {x <> y}) (loss : A -> R) (later : A -> list A -> R)
      p q P Q : (forall x, 0 <= p x) -> (forall x, 0 <= q x) -> (forall x t, 0 <= P x t) -> (forall x t, 0 <= Q x t) ->
    close o loss p q -> (forall x, close o (later x) (P x) (Q x)) ->
    close o (fun t => match t with [] => 0 | x :: t => loss x + later x t end) (sequence p P) (sequence q Q).
  Proof.
    intros Hp Hq HP HQ. destruct o as [|a]; simpl in *.
    - intros H K [|x t]; simpl; [lra|]. rewrite exp_plus.
      replace (q x * Q x t * (exp (loss x) * exp (later x t))) with ((q x * exp (loss x)) * (Q x t * exp (later x t))) by ring.
      apply Rmult_le_compat; auto.
    - intros [H0 H] K. split.
      + intros [|x t]; simpl; auto. intros E. apply Rmult_integral in E. destruct E as [E|E].
        * rewrite (H0 x E). ring.
        * rewrite (proj1 (K x) t E). ring.
      + intros l N. set (k := weight_of a) in *.
        set (heads := nodup dec (flat_map (fun t => match t with [] => [] | x :: _ => [x] end) l)).
        assert (Hn : NoDup heads) by apply NoDup_nodup.
        rewrite (sum_ext _ (sequence (fun x => moment a (p x) (q x) * exp (- (k * loss x)))
          (fun x t => moment a (P x t) (Q x t) * exp (- (k * later x t))))).
        2:{ intros [|x t] _; simpl; [rewrite moment_zero by exact o_proper; ring|]. rewrite moment_mult.
            replace (- (k * (loss x + later x t))) with (- (k * loss x) + - (k * later x t)) by ring.
            rewrite exp_plus. ring. }
        rewrite (sequence_sum dec _ _ l heads Hn).
        2:{ intros x t Hx. apply nodup_In, in_flat_map. exists (x :: t). simpl. auto. }
        eapply Rle_trans; [apply sum_le|apply (H heads Hn)]. intros x _.
        cbv beta. match goal with |- ?m * ?n <= _ => replace m with (m * 1) at 2 by ring end. apply Rmult_le_compat_l.
        * apply Rmult_le_pos; [apply moment_nonneg; auto|left; apply exp_pos].
        * apply (proj2 (K x)). apply tails_nodup, N.
  Qed.
End Facts.

(** ** Several draws, independent of each other *)

Fixpoint independent {A} (laws : list (A -> R)) (vs : list A) : R :=
  match laws, vs with
  | [], [] => 1
  | p :: laws, v :: vs => p v * independent laws vs
  | _, _ => 0
  end.

Lemma independent_distribution {A} (dec : forall x y : A, {x = y} + {x <> y}) laws :
  Forall distribution laws -> distribution (independent (A := A) laws).
Proof.
  induction 1 as [|p laws Hp H IH].
  - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
  - eapply distribution_ext; [|apply (sequence_distribution dec p (fun _ => independent laws) Hp (fun _ => IH))].
    intros []; reflexivity.
Qed.

(** The losses add up. *)
Lemma independent_close o {A B} (dec : forall x y : A, {x = y} + {x <> y}) (loss : B -> R) (p q : B -> A -> R) l : proper o ->
  (forall b, In b l -> distribution (p b) /\ distribution (q b) /\ 0 <= loss b /\ close o (fun _ => loss b) (p b) (q b)) ->
  close o (fun _ => sum loss l) (independent (map p l)) (independent (map q l)).
Proof.
  intros Ho. induction l as [|b l IH]; intros H.
  - simpl. apply (close_ext o Ho (fun _ => 0) _ ended ended); try (intros []; reflexivity).
    apply (close_same o Ho), ended_distribution.
  - destruct (H b (or_introl eq_refl)) as (Dp & Dq & L & C).
    assert (H' : forall c, In c l -> distribution (p c) /\ distribution (q c) /\ 0 <= loss c /\
      close o (fun _ => loss c) (p c) (q c)) by (intros c Hc; apply H; right; exact Hc).
    specialize (IH H').
    assert (Dps : distribution (independent (map p l))).
    { apply (independent_distribution dec), Forall_forall. intros f Hf. apply in_map_iff in Hf. destruct Hf as (c & <- & Hc). apply H', Hc. }
    assert (Dqs : distribution (independent (map q l))).
    { apply (independent_distribution dec), Forall_forall. intros f Hf. apply in_map_iff in Hf. destruct Hf as (c & <- & Hc). apply H', Hc. }
    assert (Ls : 0 <= sum loss l).
    { clear - H'. induction l as [|c l IH]; simpl; [lra|]. destruct (H' c (or_introl eq_refl)) as (_ & _ & L & _).
      assert (0 <= sum loss l); [|lra]. apply IH. intros d Hd. apply H'. right. exact Hd. }
    pose proof (close_sequence o Ho dec (fun _ => loss b) (fun _ _ => sum loss l) (p b) (q b)
      (fun _ => independent (map p l)) (fun _ => independent (map q l)) (nonnegative _ Dp) (nonnegative _ Dq)
      (fun _ => nonnegative _ Dps) (fun _ => nonnegative _ Dqs) C (fun _ => IH)) as K.
    apply (close_weaken o Ho (fun t => match t with [] => 0 | _ => loss b + sum loss l end)).
    + intros [|v vs]; simpl; [lra|]. apply Rmult_le_pos; [apply Dp|apply Dps].
    + intros [|v vs]; simpl; [lra|]. apply Rmult_le_pos; [apply Dq|apply Dqs].
    + intros []; simpl; lra.
    + revert K. apply (close_ext o Ho); intros []; reflexivity.
Qed.

(** With one loss for all outcomes, the moments are at most its exponential. *)
Lemma close_moments a {A} (p q : A -> R) r : close (Order a) (fun _ => r) p q <->
  (forall x, q x = 0 -> p x = 0) /\
  forall l, NoDup l -> sum (fun x => moment a (p x) (q x)) l <= exp (weight_of a * r).
Proof.
  simpl. set (c := exp (weight_of a * r)). assert (C : 0 < c) by apply exp_pos.
  assert (E : exp (- (weight_of a * r)) = / c) by apply exp_Ropp. rewrite E.
  assert (F : forall l, sum (fun x => moment a (p x) (q x) * / c) l = / c * sum (fun x => moment a (p x) (q x)) l).
  { intros l. rewrite <- sum_scale. apply sum_ext. intros. ring. }
  split; intros [H0 H]; (split; [exact H0|]); intros l N; specialize (H l N); rewrite ?F in *.
  - apply (Rmult_le_reg_l (/ c)); [apply Rinv_0_lt_compat, C|]. rewrite Rinv_l by lra. exact H.
  - apply (Rmult_le_reg_l c); [exact C|]. rewrite <- Rmult_assoc, Rinv_r by lra. lra.
Qed.

(** Closeness in all orders that a notion of privacy looks at. *)
Inductive notion := Pure | Concentrated.

Definition looks_at (n : notion) (o : order) : Prop :=
  match n, o with Pure, Worst => True | Concentrated, Order a => (0 < a)%nat | _, _ => False end.

Definition alike (n : notion) {A} (loss : A -> R) (p q : A -> R) : Prop := forall o, looks_at n o -> close o loss p q.

Lemma looks_proper n o : looks_at n o -> proper o.
Proof. destruct n, o; simpl; tauto. Qed.

(** ** As (ε, δ)

    Canonne, Kamath and Steinke's conversion, at integer orders. *)

Lemma bernoulli y n : 0 <= y -> 1 + INR n * (y - 1) <= y ^ n.
Proof.
  intros Hy. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR. simpl.
  assert (y * (1 + INR n * (y - 1)) <= y * y ^ n) by (apply Rmult_le_compat_l; auto).
  assert (0 <= INR n * ((y - 1) * (y - 1))) by (apply Rmult_le_pos; [apply pos_INR|apply Rle_0_sqr]). lra.
Qed.

(** δ = (a-1)^(a-1) / a^a * exp((a-1)(a r - ε)) at order a ≥ 2. *)
Definition delta_at (a : nat) (r e : R) : R :=
  (INR a - 1) ^ (a - 1) / INR a ^ a * exp ((INR a - 1) * (INR a * r - e)).

Lemma delta_at_nonneg a r e : (1 < a)%nat -> 0 <= delta_at a r e.
Proof.
  intros Ha. assert (1 < INR a) by (apply lt_INR in Ha; simpl in Ha; lra). unfold delta_at.
  apply Rmult_le_pos; [|left; apply exp_pos]. apply Rmult_le_pos; [apply pow_le; lra|left; apply Rinv_0_lt_compat, pow_lt; lra].
Qed.

Lemma pointwise a p q e : (1 < a)%nat -> 0 <= p -> 0 <= q -> (q = 0 -> p = 0) ->
  p <= exp e * q + (INR a - 1) ^ (a - 1) / INR a ^ a * exp (- ((INR a - 1) * e)) * moment a p q.
Proof.
  intros Ha Hp Hq H0. destruct (Rle_lt_or_eq_dec _ _ Hq) as [Q|Z].
  2:{ rewrite (H0 (eq_sym Z)), <- Z, moment_zero by lia. lra. }
  set (E := exp e). assert (HE : 0 < E) by apply exp_pos.
  destruct a as [|[|b]]; try lia. unfold moment. replace (S (S b) - 1)%nat with (S b) by lia.
  set (n := INR (S (S b))). assert (Hn : n - 1 = INR (S b)) by (unfold n; rewrite (S_INR (S b)); ring).
  assert (1 <= INR (S b)) by (rewrite S_INR; pose proof (pos_INR b); lra).
  assert (HX : exp (- ((n - 1) * e)) = (/ E) ^ S b).
  { unfold E. rewrite <- exp_Ropp, Hn. generalize (S b). induction n0 as [|m IH]; [simpl; rewrite Rmult_0_l, Ropp_0, exp_0; ring|].
    rewrite S_INR. simpl. rewrite <- IH, <- exp_plus. f_equal. ring. }
  rewrite HX. set (y := p * (n - 1) / (n * E * q)).
  assert (Hd : 0 < n * E * q) by (repeat apply Rmult_lt_0_compat; auto; lra).
  assert (Hy : 0 <= y) by (unfold y; apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; apply Rinv_0_lt_compat, Hd]).
  pose proof (bernoulli y (S (S b)) Hy) as B. fold n in B.
  assert (X : (n - 1) ^ S b / n ^ S (S b) * (/ E) ^ S b * (p ^ S (S b) * (/ q) ^ S b) = E * q / (n - 1) * y ^ S (S b)).
  { unfold y, Rdiv. rewrite !Rpow_mult_distr, !Rinv_mult, !Rpow_mult_distr, !pow_inv.
    simpl. field. repeat split; try (apply pow_nonzero; lra); lra. }
  rewrite X.
  assert (K : E * q / (n - 1) * (1 + n * (y - 1)) <= E * q / (n - 1) * y ^ S (S b)).
  { apply Rmult_le_compat_l; auto. apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; apply Rinv_0_lt_compat; lra]. }
  assert (V : E * q / (n - 1) * (1 + n * (y - 1)) = p - E * q) by (unfold y; field; repeat split; lra).
  lra.
Qed.

Theorem convert a {A} (p q : A -> R) r e l : (1 < a)%nat -> (forall x, 0 <= p x) -> (forall x, 0 <= q x) ->
  close (Order a) (fun _ => r) p q -> NoDup l -> sum p l <= exp e * sum q l + delta_at a r e.
Proof.
  intros Ha Hp Hq C N. apply close_moments in C. destruct C as [H0 H].
  set (c := (INR a - 1) ^ (a - 1) / INR a ^ a * exp (- ((INR a - 1) * e))).
  assert (1 < INR a) by (apply lt_INR in Ha; simpl in Ha; lra).
  assert (Hc : 0 <= c).
  { unfold c. apply Rmult_le_pos; [|left; apply exp_pos].
    apply Rmult_le_pos; [apply pow_le; lra|left; apply Rinv_0_lt_compat, pow_lt; lra]. }
  eapply Rle_trans with (sum (fun x => exp e * q x + c * moment a (p x) (q x)) l).
  - apply sum_le. intros x _. apply pointwise; auto.
  - rewrite sum_plus, !sum_scale. apply Rplus_le_compat_l. unfold delta_at.
    replace ((INR a - 1) * (INR a * r - e)) with (- ((INR a - 1) * e) + weight_of a * r) by (unfold weight_of; ring).
    rewrite exp_plus, <- Rmult_assoc. fold c. apply Rmult_le_compat_l; auto.
Qed.
