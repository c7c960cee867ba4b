(** * Probabilities on countable sets

    The answers of a mechanism and the traces of a program form countable sets,
    so a probability is a mass function: no measure theory is needed.  A mass
    function is a distribution if its finite sums never exceed 1 and come as
    close to 1 as one likes, that is, if its masses sum to 1. *)

Require Import Reals Lra Lia List Arith Bool.
Require Import Fpinq.Bags.
Import ListNotations.
Open Scope R_scope.

Lemma exp_mono x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; apply exp_increasing, H|lra]. Qed.

Lemma exp_nothing x : exp (x - x) = 1.
Proof. replace (x - x) with 0 by ring. apply exp_0. Qed.

Fixpoint sum {A} (f : A -> R) (l : list A) : R := match l with [] => 0 | x :: l => f x + sum f l end.

Lemma sum_app {A} (f : A -> R) l k : sum f (l ++ k) = sum f l + sum f k.
Proof. induction l; simpl; [ring|]. rewrite IHl. ring. Qed.

Lemma sum_map {A B} (f : B -> R) (g : A -> B) l : sum f (map g l) = sum (fun x => f (g x)) l.
Proof. induction l; simpl; [reflexivity|]. rewrite IHl. reflexivity. Qed.

Lemma sum_ext {A} (f g : A -> R) l : (forall x, In x l -> f x = g x) -> sum f l = sum g l.
Proof. induction l; simpl; intros H; [reflexivity|]. rewrite H, IHl; auto. Qed.

Lemma sum_scale {A} c (f : A -> R) l : sum (fun x => c * f x) l = c * sum f l.
Proof. induction l; simpl; [ring|]. rewrite IHl. ring. Qed.

Lemma sum_plus {A} (f g : A -> R) l : sum (fun x => f x + g x) l = sum f l + sum g l.
Proof. induction l; simpl; [ring|]. rewrite IHl. ring. Qed.

Lemma sum_le {A} (f g : A -> R) l : (forall x, In x l -> f x <= g x) -> sum f l <= sum g l.
Proof. induction l; simpl; intros H; [lra|]. apply Rplus_le_compat; auto. Qed.

Lemma sum_zero {A} (f : A -> R) l : (forall x, In x l -> f x = 0) -> sum f l = 0.
Proof. induction l; simpl; intros H; [reflexivity|]. rewrite H, IHl; auto. ring. Qed.

Lemma sum_nonneg {A} (f : A -> R) l : (forall x, 0 <= f x) -> 0 <= sum f l.
Proof. intros H. induction l; simpl; [lra|]. specialize (H a). lra. Qed.

Lemma sum_indicator {A} (dec : forall x y : A, {x = y} + {x <> y}) (f : A -> R) x l :
  NoDup l -> In x l -> sum (fun y => if dec x y then f y else 0) l = f x.
Proof.
  induction l as [|y l IH]; simpl; intros N H; [contradiction|]. inversion N; subst.
  destruct (dec x y) as [E|E].
  - subst. rewrite sum_zero; [ring|]. intros z Hz. destruct (dec y z); congruence.
  - destruct H; [congruence|]. rewrite IH; auto. ring.
Qed.

(** ** Distributions *)

Record distribution {A} (f : A -> R) : Prop := {
  nonnegative : forall x, 0 <= f x;
  at_most_one : forall l, NoDup l -> sum f l <= 1;
  near_one : forall delta, 0 < delta -> exists l, NoDup l /\ 1 - delta <= sum f l }.

Lemma distribution_ext {A} (f g : A -> R) : (forall x, f x = g x) -> distribution f -> distribution g.
Proof.
  intros E [P U L]. split.
  - intros x. rewrite <- E. apply P.
  - intros l N. rewrite <- (sum_ext f g) by auto. auto.
  - intros d Hd. destruct (L d Hd) as (l & N & H). exists l. split; auto. rewrite <- (sum_ext f g) by auto. exact H.
Qed.

(** A certain outcome. *)
Definition certain {A} (dec : forall x y : A, {x = y} + {x <> y}) (x y : A) : R := if dec x y then 1 else 0.

Lemma certain_distribution {A} (dec : forall x y : A, {x = y} + {x <> y}) x : distribution (certain dec x).
Proof.
  unfold certain. split.
  - intros y. destruct (dec x y); lra.
  - intros l N. destruct (in_dec dec x l) as [H|H].
    + rewrite (sum_indicator dec (fun _ => 1)); auto. lra.
    + rewrite sum_zero; [lra|]. intros y Hy. destruct (dec x y); congruence.
  - intros d Hd. exists [x]. split; [constructor; [simpl; tauto|constructor]|].
    simpl. destruct (dec x x); [lra|congruence].
Qed.

(** Finitely many outcomes whose masses sum to 1. *)
Lemma sum_covered {A} (dec : forall x y : A, {x = y} + {x <> y}) (f : A -> R) l all :
  (forall x, 0 <= f x) -> NoDup l -> NoDup all -> (forall x, In x l -> ~ In x all -> f x = 0) -> sum f l <= sum f all.
Proof.
  intros P. revert all. induction l as [|x l IH]; intros all Nl N Z; simpl; [apply sum_nonneg, P|].
  inversion Nl; subst.
  destruct (in_dec dec x all) as [Hin|Hout].
  - apply in_split in Hin. destruct Hin as (k1 & k2 & ->). rewrite sum_app. simpl.
    assert (K : sum f l <= sum f (k1 ++ k2)).
    { apply IH; auto; [eapply NoDup_remove_1; eauto|]. intros y Hy Hn. apply Z; [simpl; auto|].
      rewrite in_app_iff in *. simpl. intros [?|[?|?]]; subst; tauto. }
    rewrite sum_app in K. lra.
  - rewrite (Z x) by (simpl; auto). assert (K : sum f l <= sum f all); [|lra].
    apply IH; auto. intros y Hy Hn. apply Z; simpl; auto.
Qed.

Lemma finite_distribution {A} (dec : forall x y : A, {x = y} + {x <> y}) (f : A -> R) (all : list A) :
  (forall x, 0 <= f x) -> NoDup all -> (forall x, ~ In x all -> f x = 0) -> sum f all = 1 -> distribution f.
Proof.
  intros P N Z H. split; auto.
  - intros l Nl. rewrite <- H. apply (sum_covered dec); auto.
  - intros d Hd. exists all. split; auto. lra.
Qed.

(** Renaming outcomes: [inverse] recovers an outcome that is possible from its
    name. *)
Lemma distribution_rename_possible {A B} (f : A -> R) (name : A -> B) (inverse : B -> option A) :
  (forall b a, inverse b = Some a -> b = name a) -> (forall a, f a <> 0 -> inverse (name a) = Some a) -> distribution f ->
  distribution (fun b => match inverse b with Some a => f a | None => 0 end).
Proof.
  intros H K [P U L]. split.
  - intros b. destruct (inverse b); [apply P|lra].
  - intros l N. set (as_ := flat_map (fun b => match inverse b with Some a => [a] | None => [] end) l).
    assert (E : sum (fun b => match inverse b with Some a => f a | None => 0 end) l = sum f as_).
    { unfold as_. clear N as_. induction l as [|b l IH]; simpl; auto. rewrite sum_app, <- IH.
      destruct (inverse b); simpl; ring. }
    rewrite E. apply U. unfold as_. clear E as_. induction N as [|b l Hb N IH]; simpl; [constructor|].
    destruct (inverse b) as [a|] eqn:Ea; simpl; auto. constructor; auto.
    intros M. apply in_flat_map in M. destruct M as (b' & Hb' & M).
    destruct (inverse b') as [a'|] eqn:Ea'; [|contradiction].
    destruct M as [->|[]]. apply H in Ea, Ea'. congruence.
  - intros d Hd. destruct (L d Hd) as (l & N & HL).
    set (possible := filter (fun a => if Req_EM_T (f a) 0 then false else true) l).
    assert (In_possible : forall a, In a possible -> f a <> 0).
    { intros a Ha. apply filter_In in Ha. destruct Ha as [_ Ha]. destruct (Req_EM_T (f a) 0); [discriminate|assumption]. }
    exists (map name possible). split.
    + assert (N' : NoDup possible) by (apply NoDup_filter, N). clear HL.
      induction N' as [|a l' Ha N' IH]; simpl; constructor.
      * rewrite in_map_iff. intros (a' & E & Ha').
        assert (X : inverse (name a) = Some a) by (apply K, In_possible; left; reflexivity).
        assert (Y : inverse (name a') = Some a') by (apply K, In_possible; right; exact Ha'). congruence.
      * apply IH. intros b Hb. apply In_possible. right. exact Hb.
    + rewrite sum_map, (sum_ext _ f) by (intros a Ha; rewrite (K a (In_possible a Ha)); reflexivity).
      replace (sum f possible) with (sum f l); [exact HL|]. unfold possible. clear. induction l as [|a l IH]; simpl; auto.
      destruct (Req_EM_T (f a) 0) as [E|]; simpl; rewrite IH; [rewrite E; ring|reflexivity].
Qed.

Lemma distribution_rename {A B} (f : A -> R) (name : A -> B) (inverse : B -> option A) :
  (forall b a, inverse b = Some a <-> b = name a) -> distribution f ->
  distribution (fun b => match inverse b with Some a => f a | None => 0 end).
Proof. intros H. apply (distribution_rename_possible f name); [intros b a; apply H|intros a _; apply H; reflexivity]. Qed.

(** ** Sequences

    First an outcome drawn from [w], then a sequence drawn from a distribution
    that may depend on it: the law of adaptive composition. *)

Section Sequences.
  Context {A : Type} (dec : forall x y : A, {x = y} + {x <> y}).
  Variables (w : A -> R) (rest : A -> list A -> R).
  Hypothesis w_distribution : distribution w.
  Hypothesis rest_distribution : forall x, distribution (rest x).

  Definition sequence (t : list A) : R := match t with [] => 0 | x :: t => w x * rest x t end.

  Let tails (x : A) (l : list (list A)) : list (list A) :=
    flat_map (fun t => match t with [] => [] | y :: t => if dec y x then [t] else [] end) l.

  Lemma tails_in x l t : In t (tails x l) <-> In (x :: t) l.
  Proof.
    unfold tails. rewrite in_flat_map. split.
    - intros ([|y s] & Hs & K); [contradiction|]. destruct (dec y x); [|contradiction]. destruct K as [->|[]]. subst.
      exact Hs.
    - intros H. exists (x :: t). split; auto. destruct (dec x x); simpl; auto.
  Qed.

  Lemma tails_nodup x l : NoDup l -> NoDup (tails x l).
  Proof.
    induction 1 as [|[|y s] l Hs N IH]; simpl; auto; [constructor|]. destruct (dec y x); simpl; auto.
    constructor; auto. subst. change (~ In s (tails x l)). rewrite tails_in. exact Hs.
  Qed.

  Lemma sequence_sum l heads : NoDup heads -> (forall x t, In (x :: t) l -> In x heads) ->
    sum sequence l = sum (fun x => w x * sum (rest x) (tails x l)) heads.
  Proof.
    intros N. induction l as [|t l IH]; intros H.
    - simpl. symmetry. apply sum_zero. intros. ring.
    - cbn [sum]. rewrite IH by (intros; eapply H; simpl; eauto). destruct t as [|y t].
      + simpl. ring.
      + rewrite (sum_ext (fun x => w x * sum (rest x) (tails x ((y :: t) :: l)))
                         (fun x => (if dec y x then w x * rest x t else 0) + w x * sum (rest x) (tails x l))).
        * rewrite sum_plus, (sum_indicator dec (fun x => w x * rest x t) y); auto. apply (H y t). simpl. auto.
        * intros x _. simpl. destruct (dec y x); simpl; fold (tails x l); ring.
  Qed.

  Lemma sequence_distribution : distribution sequence.
  Proof.
    destruct w_distribution as [P U L]. split.
    - intros [|x t]; simpl; [lra|]. apply Rmult_le_pos; auto. apply rest_distribution.
    - intros l N.
      set (heads := nodup dec (flat_map (fun t => match t with [] => [] | x :: _ => [x] end) l)).
      assert (Hn : NoDup heads) by apply NoDup_nodup.
      rewrite (sequence_sum l heads Hn).
      + eapply Rle_trans; [|apply (U heads Hn)]. apply sum_le. intros x _.
        rewrite <- (Rmult_1_r (w x)) at 2. apply Rmult_le_compat_l; auto.
        apply rest_distribution, tails_nodup, N.
      + intros x t Hx. apply nodup_In, in_flat_map. exists (x :: t). simpl. auto.
    - intros d Hd. destruct (Rle_dec 1 d) as [Hbig|Hbig]; [exists []; split; [constructor|simpl; lra]|].
      destruct (L (d / 2)) as (heads & Hn & Hs); [lra|].
      assert (K : exists l, NoDup l /\ (forall x t, In (x :: t) l -> In x heads) /\
                  (1 - d / 2) * sum w heads <= sum sequence l).
      { clear Hs. induction Hn as [|x heads Hx Hn IH].
        - exists []. repeat split; simpl; [constructor|tauto|lra].
        - destruct IH as (l & Nl & Hl & Sl).
          destruct (near_one _ (rest_distribution x) (d / 2)) as (ts & Nt & St); [lra|].
          exists (map (cons x) ts ++ l). repeat split.
          + apply nodup_app; auto.
            * apply FinFun.Injective_map_NoDup; auto. intros t t' E. congruence.
            * intros t Ht Ht'. apply in_map_iff in Ht. destruct Ht as (t' & <- & _). apply Hx. eapply Hl; eauto.
          + intros y t Ht. apply in_app_or in Ht. destruct Ht as [Ht|Ht]; [|right; eauto].
            apply in_map_iff in Ht. destruct Ht as (t' & E & _). left. congruence.
          + rewrite sum_app, sum_map. simpl. rewrite sum_scale. specialize (P x). nra. }
      destruct K as (l & Nl & _ & Sl). exists l. split; auto. nra.
  Qed.
End Sequences.

(** The empty sequence, for certain. *)
Definition ended {A} (t : list A) : R := match t with [] => 1 | _ => 0 end.

Lemma ended_distribution {A} : distribution (@ended A).
Proof.
  split.
  - intros []; simpl; lra.
  - intros l N. destruct N as [|t l Ht N]; simpl; [lra|].
    assert (K : forall l : list (list A), ~ In [] l -> sum ended l = 0).
    { intros k Hk. apply sum_zero. intros [|x s] Hs; [contradiction|reflexivity]. }
    destruct t as [|x t]; simpl; [rewrite K; auto; lra|].
    clear Ht. induction N as [|s l Hs N IH]; simpl; [lra|].
    destruct s; simpl; [rewrite K; auto; lra|]. lra.
  - intros d Hd. exists [[]]. split; [constructor; [simpl; tauto|constructor]|]. simpl. lra.
Qed.
