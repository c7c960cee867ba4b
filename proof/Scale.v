(** * The scaling factor

    [model/accounts.py: scaling_factor] in Coq.  What a program is told about a
    table is one number: what a query at e = 1 would cost the dearest root if
    nothing had been charged yet.  It is

    - a bound: with d_x the distance of root x, the table's distance is at most
      Σ_x price(x) * d_x; so one record of any root changes no more records of
      the table than the number says;
    - an integer, as long as the sensitivities are. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Sources.
Import ListNotations.
Open Scope R_scope.

(** The accounts with their partitions and nothing charged. *)
Definition unused (p : Partition) : Partition :=
  {| first := first p; parts := parts p; sensitivity := sensitivity p; maximum := 0 |}.
Definition fresh (A : Accounts) : Accounts :=
  {| sources := sources A; counters := fun _ => 0; direct := fun _ => 0; partitions := map unused (partitions A) |}.

Definition scaling_factor (roots : nat) (A : Accounts) (v : vector) : R := largest (price (fresh A) v 1) 0 roots 0.

Section Bound.
  Variable roots : nat.

  Lemma fresh_ordered ps : forall n, ordered roots n ps -> ordered roots n (map unused ps).
  Proof.
    induction ps as [|p ps IH]; intros n W; simpl in *; auto. destruct W as (-> & H1 & H2 & _ & W).
    repeat split; auto. lra.
  Qed.

  Lemma fresh_geometric d ps : geometric d ps -> geometric d (map unused ps).
  Proof. induction 1; simpl; constructor; auto. Qed.

  Lemma fresh_cost d ps : forwarded_cost (map unused ps) d = 0.
  Proof. induction ps as [|p ps IH]; simpl; auto. rewrite IH. ring. Qed.

  (** The price of e = 1 on fresh counters covers the distance of the table. *)
  Theorem price_covers A v d : ordered roots (sources A) (partitions A) -> geometric d (partitions A) ->
    (forall x, 0 <= d x) -> dot (sources A) v d <= dot roots (price (fresh A) v 1) d.
  Proof.
    intros W G D. pose proof (fresh_ordered _ _ W) as W'.
    pose proof (charge_potential roots (fresh A) v 1 d W') as P.
    assert (Z : Psi (fresh A) d = 0).
    { unfold Psi, potential. simpl. rewrite dot_zero, fresh_cost. ring. }
    rewrite Z, Rmult_1_l, Rplus_0_l in P. simpl in P. rewrite <- P.
    rewrite (dot_ext roots (price (fresh A) v 1) (counters (charge (fresh A) v 1)) d d)
      by (intros; split; auto; unfold price; simpl; ring).
    unfold Psi, charge. simpl.
    pose proof (settle_correct roots (map unused (partitions A)) (sources A) (fun x => 0 + v x * 1) W') as S.
    destruct (settle (map unused (partitions A)) (fun x => 0 + v x * 1)) as [qs C]. simpl.
    destruct S as (Wq & _ & _ & Hc & _ & Hg). apply potential_le_roots; auto. apply Hg, fresh_geometric, G.
  Qed.

  Lemma total_distance n d : (forall x, 0 <= d x) -> forall f, (forall x, (x < n)%nat -> f x <= largest f 0 n 0) ->
    dot n f d <= largest f 0 n 0 * dot n (fun _ => 1) d.
  Proof.
    intros D f H. assert (K : forall m M, (m <= n)%nat -> (forall x, (x < n)%nat -> f x <= M) ->
      dot m f d <= M * dot m (fun _ => 1) d).
    { induction m as [|m IH]; intros M Hm HM; simpl; [lra|]. specialize (IH M ltac:(lia) HM).
      pose proof (HM m ltac:(lia)). specialize (D m). nra. }
    apply K; auto.
  Qed.

  Theorem factor_covers A v d : ordered roots (sources A) (partitions A) -> geometric d (partitions A) ->
    (forall x, 0 <= d x) -> dot (sources A) v d <= scaling_factor roots A v * dot roots (fun _ => 1) d.
  Proof.
    intros W G D. eapply Rle_trans; [apply price_covers; assumption|]. apply total_distance; auto.
    intros x Hx. apply (largest_bounds (price (fresh A) v 1) 0 roots 0). exact Hx.
  Qed.
End Bound.

(** ** Integers *)

Definition integer (r : R) : Prop := exists z, r = IZR z.

Lemma integer_zero : integer 0.
Proof. exists 0%Z. reflexivity. Qed.

Lemma integer_one : integer 1.
Proof. exists 1%Z. reflexivity. Qed.

Lemma integer_nat n : integer (INR n).
Proof. exists (Z.of_nat n). apply INR_IZR_INZ. Qed.

Lemma integer_plus r s : integer r -> integer s -> integer (r + s).
Proof. intros [x ->] [y ->]. exists (x + y)%Z. symmetry. apply plus_IZR. Qed.

Lemma integer_minus r s : integer r -> integer s -> integer (r - s).
Proof. intros [x ->] [y ->]. exists (x - y)%Z. symmetry. apply minus_IZR. Qed.

Lemma integer_times r s : integer r -> integer s -> integer (r * s).
Proof. intros [x ->] [y ->]. exists (x * y)%Z. symmetry. apply mult_IZR. Qed.

Lemma integer_largest C lo k m : (forall x, integer (C x)) -> integer m -> integer (largest C lo k m).
Proof. intros H Hm. induction k; simpl; auto. unfold Rmax. destruct (Rle_dec _ _); auto. Qed.

Definition whole (p : Partition) : Prop := (forall x, integer (sensitivity p x)) /\ integer (maximum p).

Lemma settle_integer ps : forall C, Forall whole ps -> (forall x, integer (C x)) ->
  forall x, integer (snd (settle ps C) x).
Proof.
  induction ps as [|p ps IH]; intros C H HC x; simpl; auto. inversion H as [|q qs [H1 H2] H3]; subst.
  set (M := largest C (first p) (parts p) (maximum p)).
  specialize (IH (fun x => C x + sensitivity p x * (M - maximum p)) H3).
  destruct (settle ps _) as [qs C']. simpl in *. apply IH. intros y.
  apply integer_plus, integer_times; auto. apply integer_minus; auto. apply integer_largest; auto.
Qed.

Theorem factor_integer roots A v : (forall x, integer (v x)) ->
  Forall (fun p => forall x, integer (sensitivity p x)) (partitions A) -> integer (scaling_factor roots A v).
Proof.
  intros Hv Hp. apply integer_largest; [|apply integer_zero]. intros x. unfold price, charge. simpl.
  pose proof (settle_integer (map unused (partitions A)) (fun x => 0 + v x * 1)) as K.
  destruct (settle (map unused (partitions A)) (fun x => 0 + v x * 1)) as [qs C]. simpl in *.
  apply integer_minus; [|apply integer_zero]. apply K.
  - clear K Hv. induction Hp; simpl; constructor; auto. split; simpl; [assumption|apply integer_zero].
  - intros y. apply integer_plus; [apply integer_zero|]. apply integer_times; [apply Hv|apply integer_one].
Qed.

(** Without partitions it is the largest entry of the vector. *)
Lemma factor_flat roots A v : partitions A = [] -> scaling_factor roots A v = largest v 0 roots 0.
Proof.
  intros H. unfold scaling_factor. apply largest_ext. intros i _. unfold price, charge. simpl. rewrite H. simpl. ring.
Qed.
