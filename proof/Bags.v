(** * Bags

    A table is a bag of records: a finite collection in which a record may
    occur several times and the order means nothing.  We write a bag as a list
    and never distinguish two lists that are permutations of each other; every
    operation below is shown to respect [Permutation].

    The distance of two bags is the size of their symmetric difference, the
    number of records to add and to remove to turn one into the other. *)

Require Import List Arith Lia Permutation Bool Morphisms.
Import ListNotations.

(** ** Record types

    Records have a canonical order.  It decides equality, and it is the order
    in which [take] and [limit_per_key] pick: an order of the records
    themselves, never of their arrival. *)

Class Ordered (A : Type) := {
  leb : A -> A -> bool;
  leb_total : forall x y, leb x y = true \/ leb y x = true;
  leb_trans : forall x y z, leb x y = true -> leb y z = true -> leb x z = true;
  leb_antisym : forall x y, leb x y = true -> leb y x = true -> x = y }.

#[global] Instance ordered_nat : Ordered nat.
Proof.
  refine {| leb := Nat.leb |}.
  - intros x y. rewrite !Nat.leb_le. lia.
  - intros x y z. rewrite !Nat.leb_le. lia.
  - intros x y. rewrite !Nat.leb_le. lia.
Defined.

Definition eq_dec {A} {O : Ordered A} (x y : A) : {x = y} + {x <> y}.
Proof.
  destruct (leb x y) eqn:H, (leb y x) eqn:K.
  - left. apply leb_antisym; assumption.
  - right. intros E. subst. congruence.
  - right. intros E. subst. congruence.
  - right. intros E. destruct (leb_total x y); congruence.
Defined.

Definition is {A} {O : Ordered A} (k x : A) : bool := if eq_dec x k then true else false.

Lemma is_true {A} {O : Ordered A} (k x : A) : is k x = true <-> x = k.
Proof. unfold is. destruct (eq_dec x k); split; congruence. Qed.

(** ** Multiplicity and difference *)

Section Bags.
  Context {A : Type} {O : Ordered A}.

  (** How often x occurs in a bag. *)
  Definition count (T : list A) (x : A) : nat := count_occ eq_dec T x.
  Arguments count : simpl never.

  Lemma count_cons T x y : count (y :: T) x = (if eq_dec y x then 1 else 0) + count T x.
  Proof. unfold count. simpl. destruct (eq_dec y x); reflexivity. Qed.

  Lemma count_app T U x : count (T ++ U) x = count T x + count U x.
  Proof. apply count_occ_app. Qed.

  Lemma count_in T x : In x T <-> count T x > 0.
  Proof. apply count_occ_In. Qed.

  Lemma count_filter p T x : count (filter p T) x = if p x then count T x else 0.
  Proof.
    induction T as [|y T IH]; simpl; [destruct (p x); reflexivity|].
    destruct (p y) eqn:Hy; rewrite ?count_cons, IH; destruct (eq_dec y x); subst;
      try rewrite Hy; destruct (p x); auto.
  Qed.

  Lemma count_nodup T x : count (nodup eq_dec T) x = Nat.min 1 (count T x).
  Proof.
    destruct (in_dec eq_dec x T) as [H|H].
    - assert (K : In x (nodup eq_dec T)) by (apply nodup_In; exact H).
      apply count_in in H. pose proof (NoDup_nodup eq_dec T) as N.
      unfold count. rewrite (proj1 (NoDup_count_occ' eq_dec _) N x K). unfold count in H. lia.
    - assert (K : ~ In x (nodup eq_dec T)) by (rewrite nodup_In; exact H).
      apply (count_occ_not_In eq_dec) in H, K. unfold count. rewrite H, K. reflexivity.
  Qed.

  (** Two lists are the same bag if and only if all multiplicities agree. *)
  Lemma same_bag T U : Permutation T U <-> forall x, count T x = count U x.
  Proof. apply Permutation_count_occ. Qed.

  Fixpoint remove_one (x : A) (T : list A) : list A :=
    match T with [] => [] | y :: T => if eq_dec y x then T else y :: remove_one x T end.

  Lemma count_remove_one T x y :
    count (remove_one y T) x = count T x - (if eq_dec y x then 1 else 0).
  Proof.
    induction T as [|z T IH]; simpl; [destruct (eq_dec y x); reflexivity|].
    destruct (eq_dec z y); rewrite ?count_cons; try rewrite IH;
      destruct (eq_dec y x), (eq_dec z x); subst; try congruence; lia.
  Qed.

  (** Bag difference: the multiplicities are subtracted, not below 0. *)
  Fixpoint minus (T U : list A) : list A :=
    match U with [] => T | x :: U => minus (remove_one x T) U end.

  Lemma count_minus T U x : count (minus T U) x = count T x - count U x.
  Proof.
    revert T. induction U as [|y U IH]; intros T; simpl; [change (count [] x) with 0; lia|].
    rewrite IH, count_remove_one, count_cons. lia.
  Qed.

  (** ** Distance *)

  Definition distance (T U : list A) : nat := length (minus T U) + length (minus U T).

  (** Summing multiplicities over any list of candidates that misses none. *)
  Fixpoint total (X : list A) (f : A -> nat) : nat :=
    match X with [] => 0 | x :: X => f x + total X f end.

  Lemma total_ext X f g : (forall x, In x X -> f x = g x) -> total X f = total X g.
  Proof. induction X; simpl; intros H; [reflexivity|]. rewrite H, IHX; auto. Qed.

  Lemma total_le X f g : (forall x, In x X -> f x <= g x) -> total X f <= total X g.
  Proof. induction X; simpl; intros H; [lia|]. apply Nat.add_le_mono; auto. Qed.

  Lemma total_add X f g : total X (fun x => f x + g x) = total X f + total X g.
  Proof. induction X; simpl; lia. Qed.

  Lemma total_zero X f : (forall x, In x X -> f x = 0) -> total X f = 0.
  Proof. induction X; simpl; intros H; [reflexivity|]. rewrite H, IHX; auto. Qed.

  Lemma total_indicator X x : NoDup X -> In x X -> total X (fun y => if eq_dec x y then 1 else 0) = 1.
  Proof.
    induction X as [|y X IH]; simpl; intros N H; [contradiction|]. inversion N; subst.
    destruct (eq_dec x y) as [E|E].
    - subst. rewrite total_zero; [reflexivity|]. intros z Hz. destruct (eq_dec y z); congruence.
    - destruct H; [congruence|]. rewrite IH; auto.
  Qed.

  Lemma length_total T X : NoDup X -> incl T X -> length T = total X (count T).
  Proof.
    intros N. induction T as [|x T IH]; intros H; simpl.
    - symmetry. apply total_zero. reflexivity.
    - rewrite (total_ext X _ (fun y => (if eq_dec x y then 1 else 0) + count T y))
        by (intros; apply count_cons).
      apply incl_cons_inv in H. destruct H as [H H']. rewrite total_add, total_indicator, IH; auto.
  Qed.

  Definition apart (m n : nat) : nat := (m - n) + (n - m).

  Lemma minus_incl T U : incl (minus T U) T.
  Proof. intros x H. apply count_in. apply count_in in H. rewrite count_minus in H. lia. Qed.

  (** The distance is the sum over all records of the difference of their
      multiplicities. *)
  Lemma distance_total T U X : NoDup X -> incl T X -> incl U X ->
    distance T U = total X (fun x => apart (count T x) (count U x)).
  Proof.
    intros N HT HU. unfold distance.
    rewrite (length_total (minus T U) X), (length_total (minus U T) X); auto;
      try (eapply incl_tran; [apply minus_incl|assumption]).
    rewrite <- total_add. apply total_ext. intros x _. rewrite !count_minus. reflexivity.
  Qed.

  Definition support (Ts : list (list A)) : list A := nodup eq_dec (concat Ts).

  Lemma support_nodup Ts : NoDup (support Ts).
  Proof. apply NoDup_nodup. Qed.

  Lemma support_incl Ts T : In T Ts -> incl T (support Ts).
  Proof. intros H x Hx. apply nodup_In. apply in_concat. exists T. auto. Qed.

  Local Ltac supported := first [apply support_nodup | apply support_incl; simpl; tauto].

  (** Whatever moves each multiplicity no further than [T] to [U] does moves
      the bag no further. *)
  Lemma distance_pointwise (V W T U : list A) :
    (forall x, apart (count V x) (count W x) <= apart (count T x) (count U x)) ->
    distance V W <= distance T U.
  Proof.
    intros H. set (X := support [V; W; T; U]).
    rewrite (distance_total V W X), (distance_total T U X) by supported.
    apply total_le. auto.
  Qed.

  Lemma distance_refl T : distance T T = 0.
  Proof.
    rewrite (distance_total T T (support [T])) by supported.
    apply total_zero. intros. unfold apart. lia.
  Qed.

  Lemma distance_sym T U : distance T U = distance U T.
  Proof. unfold distance. lia. Qed.

  Lemma distance_triangle T U V : distance T V <= distance T U + distance U V.
  Proof.
    set (X := support [T; U; V]).
    rewrite (distance_total T V X), (distance_total T U X), (distance_total U V X) by supported.
    rewrite <- total_add. apply total_le. intros. unfold apart. lia.
  Qed.

  Lemma distance_app T T' U U' : distance (T ++ U) (T' ++ U') <= distance T T' + distance U U'.
  Proof.
    set (X := support [T ++ U; T' ++ U'; T; T'; U; U']).
    rewrite (distance_total (T ++ U) (T' ++ U') X), (distance_total T T' X), (distance_total U U' X)
      by supported.
    rewrite <- total_add. apply total_le. intros. rewrite !count_app. unfold apart. lia.
  Qed.

  Lemma distance_nil_r T : distance T [] = length T.
  Proof.
    rewrite (distance_total T [] (support [T; []])), (length_total T (support [T; []])) by supported.
    apply total_ext. intros x _. unfold apart. replace (count [] x) with 0 by reflexivity. lia.
  Qed.

  Lemma distance_nil_l T : distance [] T = length T.
  Proof. rewrite distance_sym. apply distance_nil_r. Qed.

  Lemma distance_lengths T U : distance T U <= length T + length U.
  Proof.
    eapply Nat.le_trans; [apply (distance_triangle T [] U)|].
    rewrite distance_nil_l, distance_nil_r. lia.
  Qed.

  Lemma length_distance T U : apart (length T) (length U) <= distance T U.
  Proof.
    pose proof (distance_triangle T U []) as H. pose proof (distance_triangle U T []) as K.
    rewrite !distance_nil_r in *. rewrite (distance_sym U T) in K. unfold apart. lia.
  Qed.

  (** Distance 0 is being the same bag. *)
  Lemma distance_zero T U : distance T U = 0 <-> Permutation T U.
  Proof.
    split; intros H.
    - apply same_bag. intros x. unfold distance in H.
      assert (K : minus T U = [] /\ minus U T = []).
      { destruct (minus T U), (minus U T); simpl in H; try lia; auto. }
      destruct K as [K L].
      pose proof (count_minus T U x) as P. pose proof (count_minus U T x) as Q.
      rewrite K in P. rewrite L in Q. replace (count [] x) with 0 in * by reflexivity. lia.
    - apply Nat.le_0_r. rewrite <- (distance_refl T). apply distance_pointwise. intros x.
      rewrite (proj1 (same_bag T U) H x). unfold apart. lia.
  Qed.

  #[global] Instance distance_proper : Proper (@Permutation A ==> @Permutation A ==> eq) distance.
  Proof.
    intros T T' H U U' K. apply distance_zero in H, K.
    pose proof (distance_triangle T T' U). pose proof (distance_triangle T' U' U).
    pose proof (distance_triangle T' T U'). pose proof (distance_triangle T U U').
    pose proof (distance_sym T T'). pose proof (distance_sym U U'). lia.
  Qed.

  Lemma distance_cons x T U : distance (x :: T) (x :: U) <= distance T U.
  Proof. apply distance_pointwise. intros y. rewrite !count_cons. unfold apart. lia. Qed.

  Lemma distance_add x T : distance (x :: T) T = 1.
  Proof.
    assert (H : distance (x :: T) T <= 1).
    { pose proof (distance_app [x] [] T T) as H. rewrite distance_refl, distance_nil_r in H. exact H. }
    pose proof (length_distance (x :: T) T) as K. unfold apart in K. cbn [length] in K. lia.
  Qed.

  (** Two bags are their common part and what each has beyond it; the distance
      counts what is beyond. *)
  Definition common (T U : list A) : list A := minus T (minus T U).

  Lemma split_left T U : Permutation T (minus T U ++ common T U).
  Proof. apply same_bag. intros x. unfold common. rewrite count_app, !count_minus. lia. Qed.

  Lemma split_right T U : Permutation U (minus U T ++ common T U).
  Proof. apply same_bag. intros x. unfold common. rewrite count_app, !count_minus. lia. Qed.

  Lemma distance_cancel T U C : distance (T ++ C) (U ++ C) = distance T U.
  Proof.
    apply Nat.le_antisymm; apply distance_pointwise; intros x; rewrite !count_app; unfold apart; lia.
  Qed.

  Lemma distance_disjoint T U : (forall x, In x T -> ~ In x U) -> distance T U = length T + length U.
  Proof.
    intros H. assert (Z : forall x, count T x = 0 \/ count U x = 0).
    { intros x. destruct (in_dec eq_dec x T) as [K|K].
      - right. apply (count_occ_not_In eq_dec). auto.
      - left. apply (count_occ_not_In eq_dec). exact K. }
    unfold distance. f_equal; apply Permutation_length, same_bag; intros x; rewrite count_minus; destruct (Z x); lia.
  Qed.

  (** The distance is a path metric: bags at distance n+1 are joined by a chain
      of single additions and removals. *)
  Lemma distance_path n T V : distance T V = S n ->
    exists U, distance T U = 1 /\ distance U V = n.
  Proof.
    intros H. pose proof (split_left T V) as L. pose proof (split_right T V) as R.
    generalize dependent (common T V). intros C L R.
    pose proof H as D. unfold distance in D.
    destruct (minus T V) as [|x P], (minus V T) as [|y Q]; simpl in *; try lia.
    - exists (y :: T). assert (K : distance (y :: T) V <= n).
      { rewrite L, R. eapply Nat.le_trans; [apply distance_cons|].
        eapply Nat.le_trans; [apply (distance_app [] Q C C)|].
        rewrite distance_refl, distance_nil_l. lia. }
      pose proof (distance_add y T). pose proof (distance_sym T (y :: T)).
      pose proof (distance_triangle T (y :: T) V). split; lia.
    - exists (P ++ C). assert (K : distance (P ++ C) V <= n).
      { rewrite R. eapply Nat.le_trans; [apply (distance_app P [] C C)|].
        rewrite distance_refl, distance_nil_r. lia. }
      assert (distance T (P ++ C) = 1) by (rewrite L; apply distance_add).
      pose proof (distance_triangle T (P ++ C) V). split; lia.
    - exists (P ++ C). assert (K : distance (P ++ C) V <= n).
      { rewrite R. eapply Nat.le_trans; [apply (distance_app P (y :: Q) C C)|].
        pose proof (distance_lengths P (y :: Q)) as K. rewrite distance_refl. simpl in *. lia. }
      assert (distance T (P ++ C) = 1) by (rewrite L; apply distance_add).
      pose proof (distance_triangle T (P ++ C) V). split; lia.
  Qed.
End Bags.

Arguments count : simpl never.
Arguments distance : simpl never.

(** Two lists without repetitions and without a common element. *)
Lemma nodup_app {A} (T U : list A) : NoDup T -> NoDup U -> (forall x, In x T -> ~ In x U) -> NoDup (T ++ U).
Proof.
  intros N M H. induction N as [|x T Hx N IH]; simpl; auto. constructor.
  - rewrite in_app_iff. intros [K|K]; [auto|]. apply (H x); simpl; auto.
  - apply IH. intros y Hy. apply H. simpl. auto.
Qed.
