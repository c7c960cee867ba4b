(** * Close but for a δ

    Two laws are *nearly* close at a loss and a δ if each is, up to a part of
    probability δ, a law that is close to the other's:

<<
      P = (1 - δ) P' + δ P'',   Q = (1 - δ) Q' + δ Q'',   P' and Q' close, both ways.
>>

    For pure closeness that is (ε, δ)-privacy; for concentrated closeness it is
    what is called approximate.  With δ = 0 it is closeness itself:
    [nearly_exact].  For events it is (ε, δ): [nearly_pure], [nearly_converted]. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Closeness.
Import ListNotations.
Open Scope R_scope.

Definition nearly (n : notion) {A} (loss : A -> R) (delta : R) (p q : A -> R) : Prop :=
  exists p' q', distribution p' /\ distribution q' /\ (forall x, (1 - delta) * p' x <= p x) /\
    (forall x, (1 - delta) * q' x <= q x) /\ alike n loss p' q' /\ alike n loss q' p'.

Lemma nearly_weaken n {A} (loss more : A -> R) delta larger (p q : A -> R) : (forall x, loss x <= more x) ->
  delta <= larger -> nearly n loss delta p q -> nearly n more larger p q.
Proof.
  intros L D (p' & q' & P & Q & HP & HQ & C & C'). exists p', q'.
  assert (W : forall f f' : A -> R, distribution f' -> (forall x, (1 - delta) * f' x <= f x) -> forall x, (1 - larger) * f' x <= f x).
  { intros f f' F H x. eapply Rle_trans; [|apply H]. apply Rmult_le_compat_r; [apply F|lra]. }
  repeat (split; eauto); intros o Ho; (eapply (close_weaken o (looks_proper n o Ho) loss); [| |exact L|auto]);
    (apply P || apply Q).
Qed.

Section Below.
  Context {A : Type} (dec : forall x y : A, {x = y} + {x <> y}).

  (** A distribution that is nowhere above another one is that one. *)
  Lemma nowhere_above (p p' : A -> R) : distribution p -> distribution p' -> (forall x, p' x <= p x) -> forall x, p x = p' x.
  Proof.
    intros P P' H x. apply Rle_antisym; [|apply H]. apply Rnot_lt_le. intros K.
    destruct (near_one _ P' ((p x - p' x) / 2) ltac:(lra)) as (l & N & S).
    set (k := if in_dec dec x l then l else x :: l).
    assert (Nk : NoDup k) by (unfold k; destruct (in_dec dec x l); [exact N|constructor; assumption]).
    assert (Sk : sum p' l <= sum p' k).
    { unfold k. destruct (in_dec dec x l); [lra|]. simpl. pose proof (nonnegative _ P' x). lra. }
    assert (Hx : In x k) by (unfold k; destruct (in_dec dec x l); [assumption|left; reflexivity]).
    assert (G : sum p' k + (p x - p' x) <= sum p k).
    { apply in_split in Hx. destruct Hx as (k1 & k2 & ->). rewrite !sum_app. simpl.
      assert (sum p' k1 <= sum p k1) by (apply sum_le; auto). assert (sum p' k2 <= sum p k2) by (apply sum_le; auto). lra. }
    pose proof (at_most_one _ P k Nk). lra.
  Qed.

  Theorem nearly_exact n (loss : A -> R) (p q : A -> R) : distribution p -> distribution q ->
    nearly n loss 0 p q -> alike n loss p q.
  Proof.
    intros P Q (p' & q' & P' & Q' & HP & HQ & C & _) o Ho.
    apply (close_ext o (looks_proper n o Ho) loss loss p' q'); auto; intros x; symmetry; apply nowhere_above; auto;
      intros y; [specialize (HP y)|specialize (HQ y)]; lra.
  Qed.

  (** Of an event a law has no more than its part has, and δ. *)
  Lemma part_above (p p' : A -> R) delta l : distribution p -> distribution p' -> delta <= 1 ->
    (forall x, (1 - delta) * p' x <= p x) -> NoDup l -> sum p l <= delta + (1 - delta) * sum p' l.
  Proof.
    intros P P' Hd H N. apply le_epsilon. intros eta He.
    destruct (near_one _ P' eta He) as (k & Nk & Sk).
    set (rest := filter (fun x => if in_dec dec x l then false else true) k).
    assert (Nr : NoDup rest) by apply NoDup_filter, Nk.
    assert (Na : NoDup (l ++ rest)).
    { apply nodup_app; auto. intros x Hx Hr. apply filter_In in Hr. destruct Hr as [_ Hr]. destruct (in_dec dec x l); [discriminate|contradiction]. }
    pose proof (at_most_one _ P _ Na) as U. rewrite sum_app in U.
    assert (C : sum p' k <= sum p' (l ++ rest)).
    { apply (sum_covered dec); auto; [apply P'|]. intros x Hx Hn. exfalso. apply Hn, in_or_app.
      destruct (in_dec dec x l); [left; assumption|]. right. apply filter_In. split; [exact Hx|]. destruct (in_dec dec x l); [contradiction|reflexivity]. }
    rewrite sum_app in C.
    assert (R : (1 - delta) * sum p' rest <= sum p rest) by (rewrite <- sum_scale; apply sum_le; auto).
    assert ((1 - delta) * (1 - eta - sum p' l) <= (1 - delta) * sum p' rest) by (apply Rmult_le_compat_l; lra).
    assert (0 <= delta \/ delta < 0) as [D|D] by lra.
    - assert ((1 - delta) * eta <= 1 * eta) by (apply Rmult_le_compat_r; lra). lra.
    - exfalso. destruct (near_one _ P' (- delta / (2 * (1 - delta)))) as (j & Nj & Sj).
      { apply Rdiv_lt_0_compat; lra. }
      pose proof (at_most_one _ P j Nj) as J. assert (K : (1 - delta) * sum p' j <= sum p j) by (rewrite <- sum_scale; apply sum_le; auto).
      assert ((1 - delta) * (1 - - delta / (2 * (1 - delta))) <= (1 - delta) * sum p' j) by (apply Rmult_le_compat_l; lra).
      assert (E : (1 - delta) * (1 - - delta / (2 * (1 - delta))) = 1 - delta / 2) by (field; lra). lra.
  Qed.

  Section Bounds.
    Variables (p q : A -> R) (delta e more : R).
    Hypothesis P : distribution p.
    Hypothesis Q : distribution q.
    Hypothesis more_nonneg : 0 <= more.

    Lemma nearly_bound p' q' l : distribution p' -> distribution q' -> (forall x, (1 - delta) * p' x <= p x) ->
      (forall x, (1 - delta) * q' x <= q x) -> sum p' l <= exp e * sum q' l + more -> 0 <= delta -> NoDup l ->
      sum p l <= exp e * sum q l + (delta + more).
    Proof.
      intros P' Q' HP HQ C D N. pose proof (exp_pos e). pose proof (sum_nonneg q l (nonnegative _ Q)).
      assert (0 <= exp e * sum q l) by (apply Rmult_le_pos; lra).
      destruct (Rle_lt_dec delta 1) as [Hd|Hd]; [|pose proof (at_most_one _ P l N); lra].
      eapply Rle_trans; [apply (part_above p p' delta l); auto|].
      assert (B : (1 - delta) * sum q' l <= sum q l) by (rewrite <- sum_scale; apply sum_le; auto).
      assert ((1 - delta) * sum p' l <= (1 - delta) * (exp e * sum q' l + more)) by (apply Rmult_le_compat_l; lra).
      assert (exp e * ((1 - delta) * sum q' l) <= exp e * sum q l) by (apply Rmult_le_compat_l; lra).
      assert ((1 - delta) * more <= 1 * more) by (apply Rmult_le_compat_r; lra). lra.
    Qed.
  End Bounds.

  (** (ε, δ), from a pure loss ε … *)
  Theorem nearly_pure (p q : A -> R) e delta l : distribution p -> distribution q -> 0 <= delta ->
    nearly Pure (fun _ => e) delta p q -> NoDup l -> sum p l <= exp e * sum q l + delta.
  Proof.
    intros P Q D (p' & q' & P' & Q' & HP & HQ & C & _) N. specialize (C Worst I). rewrite <- (Rplus_0_r delta).
    apply (nearly_bound p q delta e 0 P Q ltac:(lra) p' q'); auto. rewrite Rplus_0_r, <- sum_scale. apply sum_le.
    intros x _. rewrite Rmult_comm. apply C.
  Qed.

  (** … and from a concentrated one, at any integer order a ≥ 2. *)
  Theorem nearly_converted (p q : A -> R) a r e delta l : (1 < a)%nat -> distribution p -> distribution q -> 0 <= delta ->
    nearly Concentrated (fun _ => r) delta p q -> NoDup l -> sum p l <= exp e * sum q l + (delta + delta_at a r e).
  Proof.
    intros Ha P Q D (p' & q' & P' & Q' & HP & HQ & C & _) N.
    apply (nearly_bound p q delta e (delta_at a r e) P Q (delta_at_nonneg a r e Ha) p' q'); auto.
    apply (convert a p' q' r e l Ha (nonnegative _ P') (nonnegative _ Q')); auto. apply (C (Order a)). simpl. lia.
  Qed.
End Below.

(** One δ after another: what the parts have, the sequence has. *)
Lemma parts_multiply a b p' p P' P : 0 <= a -> 0 <= b -> 0 <= p' -> 0 <= p -> 0 <= P' -> 0 <= P ->
  (1 - a) * p' <= p -> (1 - b) * P' <= P -> (1 - (a + b)) * (p' * P') <= p * P.
Proof.
  intros A B H1 H2 H3 H4 C D. pose proof (Rmult_le_pos _ _ H1 H3). pose proof (Rmult_le_pos _ _ H2 H4).
  destruct (Rle_lt_dec 1 (a + b)) as [N|N].
  - assert (0 <= (a + b - 1) * (p' * P')) by (apply Rmult_le_pos; lra). lra.
  - apply Rle_trans with (((1 - a) * p') * ((1 - b) * P')).
    + replace ((1 - a) * p' * ((1 - b) * P')) with ((1 - (a + b)) * (p' * P') + a * b * (p' * P')) by ring.
      assert (0 <= a * b * (p' * P')) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|assumption]). lra.
    + apply Rmult_le_compat; auto; apply Rmult_le_pos; lra.
Qed.
