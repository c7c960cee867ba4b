(** * Stability

    A transformation has stability c if its outputs are at most c times as far
    apart as its inputs.  This file proves the constant of each transformation
    of [model/plans.py] except the join, and at the end exhibits for each of
    them two neighbouring bags that attain it: no smaller constant is sound. *)

Require Import List Arith Lia Permutation Bool Morphisms.
Require Import Fpinq.Bags.
Import ListNotations.

Definition stable {A B} {OA : Ordered A} {OB : Ordered B} (c : nat) (F : list A -> list B) : Prop :=
  forall T U, distance (F T) (F U) <= c * distance T U.

(** In each argument, the other one held fixed. *)
Definition stable2 {A B C} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C}
    (a b : nat) (F : list A -> list B -> list C) : Prop :=
  (forall U, stable a (fun T => F T U)) /\ (forall T, stable b (F T)).

(** A stable transformation cannot see the order in which records arrive. *)
Lemma stable_bag {A B} {OA : Ordered A} {OB : Ordered B} c (F : list A -> list B) T U :
  stable c F -> Permutation T U -> Permutation (F T) (F U).
Proof.
  intros HF H. apply distance_zero in H. apply distance_zero. specialize (HF T U). rewrite H in HF. lia.
Qed.

Lemma stable_weaken {A B} {OA : Ordered A} {OB : Ordered B} c c' (F : list A -> list B) :
  c <= c' -> stable c F -> stable c' F.
Proof. intros H HF T U. specialize (HF T U). nia. Qed.

(** Chained transformations multiply their constants. *)
Lemma stable_compose {A B C} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C} c c'
    (F : list A -> list B) (G : list B -> list C) :
  stable c F -> stable c' G -> stable (c' * c) (fun T => G (F T)).
Proof. intros HF HG T U. specialize (HF T U). specialize (HG (F T) (F U)). nia. Qed.

(** ** One record at a time

    As the distance is a path metric, it is enough to look at one added
    record. *)

Lemma stable_add {A B} {OA : Ordered A} {OB : Ordered B} c (F : list A -> list B) :
  (forall T U, Permutation T U -> Permutation (F T) (F U)) ->
  (forall x T, distance (F (x :: T)) (F T) <= c) -> stable c F.
Proof.
  intros Hbag Hadd T U.
  assert (K : forall P C, distance (F (P ++ C)) (F C) <= c * length P).
  { induction P as [|x P IH]; intros C; simpl; [rewrite distance_refl; lia|].
    pose proof (distance_triangle (F (x :: P ++ C)) (F (P ++ C)) (F C)) as H.
    specialize (IH C). specialize (Hadd x (P ++ C)). lia. }
  pose proof (Hbag _ _ (split_left T U)) as HT. pose proof (Hbag _ _ (split_right T U)) as HU.
  rewrite HT, HU.
  pose proof (distance_triangle (F (minus T U ++ common T U)) (F (common T U)) (F (minus U T ++ common T U))) as H.
  pose proof (K (minus T U) (common T U)) as KT. pose proof (K (minus U T) (common T U)) as KU.
  rewrite (distance_sym (F (common T U))) in H. unfold distance at 2. lia.
Qed.

(** ** Row by row *)

Lemma identity_stable {A} {OA : Ordered A} : stable 1 (fun T : list A => T).
Proof. intros T U. lia. Qed.

Definition literal {A} (T : list A) : list A := T.

Definition select {A B} (f : A -> B) (T : list A) : list B := map f T.

Lemma select_stable {A B} {OA : Ordered A} {OB : Ordered B} (f : A -> B) : stable 1 (select f).
Proof.
  apply stable_add.
  - intros T U H. apply Permutation_map, H.
  - intros x T. simpl. rewrite distance_add. lia.
Qed.

Definition where_ {A} (p : A -> bool) (T : list A) : list A := filter p T.

Lemma where_stable {A} {OA : Ordered A} (p : A -> bool) : stable 1 (where_ p).
Proof.
  intros T U. rewrite Nat.mul_1_l. apply distance_pointwise. intros x. unfold where_.
  rewrite !count_filter. unfold apart. destruct (p x); lia.
Qed.

Definition distinct {A} {OA : Ordered A} (T : list A) : list A := nodup eq_dec T.

Lemma distinct_stable {A} {OA : Ordered A} : stable 1 (distinct (A := A)).
Proof.
  intros T U. rewrite Nat.mul_1_l. apply distance_pointwise. intros x. unfold distinct.
  rewrite !count_nodup. unfold apart. lia.
Qed.

(** Each row yields at most k rows; a function that offers more is cut. *)
Definition select_many {A B} (k : nat) (f : A -> list B) (T : list A) : list B :=
  flat_map (fun x => firstn k (f x)) T.

Lemma select_many_stable {A B} {OA : Ordered A} {OB : Ordered B} k (f : A -> list B) : stable k (select_many k f).
Proof.
  apply stable_add.
  - intros T U H. apply Permutation_flat_map, H.
  - intros x T. simpl.
    eapply Nat.le_trans; [apply (distance_app (firstn k (f x)) [] (select_many k f T) (select_many k f T))|].
    rewrite distance_refl, distance_nil_r, firstn_length. lia.
Qed.

(** Where the input has one record per person, [flatten] opens a person's rows
    into a table of rows.  Removing a person removes at most k of them. *)
Definition flatten {A B} (k : nat) (rows : A -> list B) (T : list A) : list B := select_many k rows T.

Lemma flatten_stable {A B} {OA : Ordered A} {OB : Ordered B} k (rows : A -> list B) : stable k (flatten k rows).
Proof. apply select_many_stable. Qed.

(** ** The canonical order *)

Section Sorting.
  Context {A : Type} {O : Ordered A}.

  Fixpoint insert (x : A) (T : list A) : list A :=
    match T with [] => [x] | y :: T => if leb x y then x :: y :: T else y :: insert x T end.

  Definition sort (T : list A) : list A := fold_right insert [] T.

  Lemma insert_permutation x T : Permutation (insert x T) (x :: T).
  Proof.
    induction T as [|y T IH]; simpl; [reflexivity|]. destruct (leb x y); [reflexivity|].
    rewrite IH. apply perm_swap.
  Qed.

  Lemma sort_permutation T : Permutation (sort T) T.
  Proof. induction T as [|x T IH]; simpl; [reflexivity|]. rewrite insert_permutation, IH. reflexivity. Qed.

  Lemma insert_commute x y T : insert x (insert y T) = insert y (insert x T).
  Proof.
    induction T as [|z T IH].
    - simpl. destruct (leb x y) eqn:H, (leb y x) eqn:K; auto.
      + rewrite (leb_antisym x y H K). reflexivity.
      + destruct (leb_total x y); congruence.
    - simpl. destruct (leb x z) eqn:Hx, (leb y z) eqn:Hy; simpl; rewrite ?Hx, ?Hy; auto.
      + destruct (leb x y) eqn:H, (leb y x) eqn:K; auto.
        * rewrite (leb_antisym x y H K). reflexivity.
        * destruct (leb_total x y); congruence.
      + destruct (leb y x) eqn:K; auto. rewrite (leb_trans y x z K Hx) in Hy. discriminate.
      + destruct (leb x y) eqn:K; auto. rewrite (leb_trans x y z K Hy) in Hx. discriminate.
      + rewrite IH. reflexivity.
  Qed.

  (** A bag has one canonical order: whatever is computed from it is a function
      of the bag. *)
  Lemma sort_canonical T U : Permutation T U -> sort T = sort U.
  Proof.
    induction 1; simpl; auto.
    - rewrite IHPermutation. reflexivity.
    - apply insert_commute.
    - congruence.
  Qed.

  (** The first k records in the canonical order. *)
  Definition take (k : nat) (T : list A) : list A := firstn k (sort T).

  Lemma firstn_longer k (T : list A) : distance (firstn k T) (firstn (S k) T) <= 1.
  Proof.
    revert T. induction k as [|k IH]; intros [|x T]; simpl; try (rewrite distance_refl; lia).
    - rewrite distance_nil_l. simpl. lia.
    - eapply Nat.le_trans; [apply distance_cons|]. apply IH.
  Qed.

  Lemma firstn_insert k x T : distance (firstn k (insert x T)) (firstn k T) <= 2.
  Proof.
    revert k. induction T as [|y T IH]; intros [|k]; simpl; auto; try (rewrite distance_refl; lia).
    - rewrite firstn_nil, distance_nil_r. simpl. lia.
    - destruct (leb x y).
      + change (y :: firstn k T) with (firstn (S k) (y :: T)).
        change (firstn (S k) (x :: y :: T)) with (x :: firstn k (y :: T)).
        pose proof (distance_triangle (x :: firstn k (y :: T)) (firstn k (y :: T)) (firstn (S k) (y :: T))) as H.
        rewrite distance_add in H. pose proof (firstn_longer k (y :: T)). lia.
      + simpl. eapply Nat.le_trans; [apply distance_cons|]. apply IH.
  Qed.

  (** One record comes in and pushes another one out. *)
  Lemma take_stable k : stable 2 (take k).
  Proof.
    apply stable_add.
    - intros T U H. unfold take. rewrite (sort_canonical T U H). reflexivity.
    - intros x T. apply firstn_insert.
  Qed.

  Lemma take_length k T : length (take k T) <= k.
  Proof. unfold take. rewrite firstn_length. lia. Qed.
End Sorting.

(** A transformation that makes at most one record, whatever it is, has
    stability 2: the old record goes, the new one comes. *)
Lemma one_record_stable {A B} {OA : Ordered A} {OB : Ordered B} (F : list A -> list B) :
  (forall T U, Permutation T U -> Permutation (F T) (F U)) -> (forall T, length (F T) <= 1) -> stable 2 F.
Proof.
  intros Hbag Hlen T U. destruct (Nat.eq_dec (distance T U) 0) as [E|E].
  - apply distance_zero, Hbag, distance_zero in E. lia.
  - pose proof (distance_lengths (F T) (F U)). pose proof (Hlen T). pose proof (Hlen U). lia.
Qed.

(** ** Key by key

    Grouping, truncating per key and joining all work on the records of one key
    at a time.  A record has one key, so the distances of the groups add up to
    no more than the distance of the tables, and an operation on groups keeps
    its constant when it is applied to every group. *)

Section Keys.
  Context {K : Type} {OK : Ordered K}.

  Definition members {A} (key : A -> K) (k : K) (T : list A) : list A := filter (fun x => is k (key x)) T.

  Lemma members_app {A} (key : A -> K) k T U : members key k (T ++ U) = members key k T ++ members key k U.
  Proof. apply filter_app. Qed.

  Lemma members_bag {A} (key : A -> K) k T U : Permutation T U -> Permutation (members key k T) (members key k U).
  Proof.
    unfold members. induction 1; simpl; auto.
    - destruct (is k (key x)); auto.
    - destruct (is k (key x)), (is k (key y)); auto. apply perm_swap.
    - eapply Permutation_trans; eassumption.
  Qed.

  Lemma members_none {A} (key : A -> K) k T : ~ In k (map key T) -> members key k T = [].
  Proof.
    induction T as [|x T IH]; simpl; intros H; [reflexivity|].
    destruct (is k (key x)) eqn:E; [apply is_true in E; tauto|]. apply IH. tauto.
  Qed.

  Lemma total_indicator_le (X : list K) k : NoDup X -> total X (fun i => if is i k then 1 else 0) <= 1.
  Proof.
    intros N. unfold is. destruct (in_dec eq_dec k X) as [H|H].
    - rewrite (total_ext X _ (fun i => if eq_dec k i then 1 else 0)); [rewrite (total_indicator X k N H); lia|].
      intros i _. destruct (eq_dec k i); reflexivity.
    - rewrite total_zero; [lia|]. intros i Hi. destruct (eq_dec k i); congruence.
  Qed.

  Lemma total_members {A} (key : A -> K) X P : NoDup X -> total X (fun k => length (members key k P)) <= length P.
  Proof.
    intros N. induction P as [|x P IH]; simpl; [rewrite total_zero; auto|].
    rewrite (total_ext X _ (fun k => (if is k (key x) then 1 else 0) + length (members key k P))).
    - rewrite total_add. pose proof (total_indicator_le X (key x) N). lia.
    - intros k _. destruct (is k (key x)); reflexivity.
  Qed.

  (** *** Partition

      Summed over parts with different keys, the stability is 1.  Records whose
      key is not listed are dropped.  (A key listed twice would count its
      records twice, so duplicates are refused.) *)
  Lemma partition_stable {A} {OA : Ordered A} (key : A -> K) X T U : NoDup X ->
    total X (fun k => distance (members key k T) (members key k U)) <= distance T U.
  Proof.
    intros N. pose proof (split_left T U) as L. pose proof (split_right T U) as R.
    eapply Nat.le_trans with (total X (fun k => length (members key k (minus T U))
      + length (members key k (minus U T)))).
    - apply total_le. intros k _.
      rewrite (members_bag key k _ _ L), (members_bag key k _ _ R), !members_app.
      eapply Nat.le_trans; [apply distance_app|]. rewrite distance_refl.
      pose proof (distance_lengths (members key k (minus T U)) (members key k (minus U T))). lia.
    - rewrite total_add. unfold distance.
      pose proof (total_members key X (minus T U) N). pose proof (total_members key X (minus U T) N). lia.
  Qed.

  Lemma distance_flat_map {C} {OC : Ordered C} (g h : K -> list C) X :
    distance (flat_map g X) (flat_map h X) <= total X (fun k => distance (g k) (h k)).
  Proof.
    induction X as [|k X IH]; simpl; [rewrite distance_refl; lia|].
    eapply Nat.le_trans; [apply distance_app|]. lia.
  Qed.

  Lemma flat_map_extend {C} (g : K -> list C) X Y : NoDup X -> NoDup Y -> incl X Y ->
    (forall k, ~ In k X -> g k = []) -> Permutation (flat_map g X) (flat_map g Y).
  Proof.
    intros NX NY H Hg. set (Z := filter (fun k => if in_dec eq_dec k X then false else true) Y).
    assert (E : Permutation Y (X ++ Z)).
    { apply NoDup_Permutation; auto.
      - apply nodup_app; [exact NX|apply NoDup_filter; exact NY|].
        intros k Hk Hz. apply filter_In in Hz. destruct Hz as [_ Hz].
        destruct (in_dec eq_dec k X); [discriminate|tauto].
      - intros k. rewrite in_app_iff. unfold Z. rewrite filter_In.
        destruct (in_dec eq_dec k X); split; intros; auto; try tauto. }
    rewrite (Permutation_flat_map g E), flat_map_app.
    replace (flat_map g Z) with (@nil C); [rewrite app_nil_r; reflexivity|].
    assert (HZ : forall k, In k Z -> g k = []).
    { intros k Hk. apply filter_In in Hk. destruct Hk as [_ Hk]. destruct (in_dec eq_dec k X); [discriminate|auto]. }
    clearbody Z. clear -HZ. induction Z as [|k Z IH]; simpl; auto. rewrite HZ, <- IH; simpl; auto.
    intros; apply HZ; simpl; auto.
  Qed.

  (** [per_key g T U] applies g to the records of T and of U that have the key
      k, for every key k that occurs. *)
  Definition per_key {A B C} (keyA : A -> K) (keyB : B -> K) (g : K -> list A -> list B -> list C)
      (T : list A) (U : list B) : list C :=
    flat_map (fun k => g k (members keyA k T) (members keyB k U)) (nodup eq_dec (map keyA T ++ map keyB U)).

  Section PerKey.
    Context {A B C : Type} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C}.
    Variables (keyA : A -> K) (keyB : B -> K) (g : K -> list A -> list B -> list C).
    Hypothesis g_nil : forall k, g k [] [] = [].

    Lemma per_key_over X T U : NoDup X -> incl (map keyA T) X -> incl (map keyB U) X ->
      Permutation (per_key keyA keyB g T U) (flat_map (fun k => g k (members keyA k T) (members keyB k U)) X).
    Proof.
      intros N HT HU. apply flat_map_extend; auto using NoDup_nodup.
      - intros k Hk. apply nodup_In, in_app_or in Hk. destruct Hk; auto.
      - intros k Hk. rewrite nodup_In, in_app_iff in Hk.
        rewrite !members_none by tauto. apply g_nil.
    Qed.

    Lemma total_mul (X : list K) c f : total X (fun k => c * f k) = c * total X f.
    Proof. induction X; simpl; lia. Qed.

    Lemma per_key_left c : (forall k N, stable c (fun M => g k M N)) ->
      forall U, stable c (fun T => per_key keyA keyB g T U).
    Proof.
      intros Hg U T T'. set (X := nodup eq_dec (map keyA T ++ map keyA T' ++ map keyB U)).
      assert (N : NoDup X) by apply NoDup_nodup.
      rewrite (per_key_over X T U), (per_key_over X T' U); auto;
        try (intros k Hk; apply nodup_In; rewrite !in_app_iff; tauto).
      eapply Nat.le_trans; [apply distance_flat_map|].
      eapply Nat.le_trans; [apply total_le; intros k _; apply Hg|].
      rewrite total_mul. apply Nat.mul_le_mono_l, partition_stable, N.
    Qed.

    Lemma per_key_right c : (forall k M, stable c (g k M)) -> forall T, stable c (per_key keyA keyB g T).
    Proof.
      intros Hg T U U'. set (X := nodup eq_dec (map keyA T ++ map keyB U ++ map keyB U')).
      assert (N : NoDup X) by apply NoDup_nodup.
      rewrite (per_key_over X T U), (per_key_over X T U'); auto;
        try (intros k Hk; apply nodup_In; rewrite !in_app_iff; tauto).
      eapply Nat.le_trans; [apply distance_flat_map|].
      eapply Nat.le_trans; [apply total_le; intros k _; apply Hg|].
      rewrite total_mul. apply Nat.mul_le_mono_l, partition_stable, N.
    Qed.
  End PerKey.

  (** The same with one table. *)
  Definition each_key {A C} (key : A -> K) (g : K -> list A -> list C) (T : list A) : list C :=
    per_key key key (fun k M _ => g k M) T [].

  Lemma each_key_stable {A C} {OA : Ordered A} {OC : Ordered C} (key : A -> K) (g : K -> list A -> list C) c :
    (forall k, g k [] = []) -> (forall k, stable c (g k)) -> stable c (each_key key g).
  Proof. intros H0 Hg. apply (per_key_left key key (fun k M _ => g k M) H0 c). auto. Qed.

  (** *** Group by: one record per key, any function of the key and the bag of
      its members.  The function is given the members in canonical order; it may
      keep the bag as it is or aggregate it. *)
  Definition group_by {A C} {OA : Ordered A} (key : A -> K) (encode : K -> list A -> C) (T : list A) : list C :=
    each_key key (fun k M => match M with [] => [] | _ => [encode k (sort M)] end) T.

  Lemma group_by_stable {A C} {OA : Ordered A} {OC : Ordered C} (key : A -> K) (encode : K -> list A -> C) :
    stable 2 (group_by key encode).
  Proof.
    apply each_key_stable; [reflexivity|]. intros k. apply one_record_stable.
    - intros T U H. rewrite (sort_canonical T U H). destruct T, U; try reflexivity.
      + apply Permutation_nil_cons in H. contradiction.
      + symmetry in H. apply Permutation_nil_cons in H. contradiction.
    - intros [|x T]; simpl; lia.
  Qed.

  (** *** Limit per key: the first k records of each key, canonical order. *)
  Definition limit_per_key {A} {OA : Ordered A} (k : nat) (key : A -> K) (T : list A) : list A :=
    each_key key (fun _ => take k) T.

  Lemma limit_per_key_stable {A} {OA : Ordered A} k (key : A -> K) : stable 2 (limit_per_key k key).
  Proof.
    apply each_key_stable; [|intros; apply take_stable]. intros _. unfold take. simpl. apply firstn_nil.
  Qed.

  (** *** Unique by key: a key with several records loses them all. *)
  Definition unique {A} (M : list A) : list A := match M with [x] => [x] | _ => [] end.

  Lemma unique_stable {A} {OA : Ordered A} : stable 1 (unique (A := A)).
  Proof.
    apply stable_add.
    - intros T U H. pose proof (Permutation_length H) as L.
      destruct T as [|x [|y T]], U as [|z [|w U]]; simpl in *; try lia; auto.
    - intros x [|y [|z T]]; simpl; [rewrite distance_nil_r|rewrite distance_nil_l|rewrite distance_refl]; simpl; lia.
  Qed.

  Lemma unique_length {A} (M : list A) : length (unique M) <= 1.
  Proof. destruct M as [|x [|y M]]; simpl; lia. Qed.

  Definition unique_by {A} (key : A -> K) (T : list A) : list A := each_key key (fun _ => unique) T.

  Lemma unique_by_stable {A} {OA : Ordered A} (key : A -> K) : stable 1 (unique_by key).
  Proof. apply each_key_stable; auto using unique_stable. Qed.

  (** *** Group join: at most one record per key, any function of the key and
      the two bags.  Whether a key needs members on both sides is up to the
      function. *)
  Definition group_join {A B C} {OA : Ordered A} {OB : Ordered B} (keyA : A -> K) (keyB : B -> K)
      (encode : K -> list A -> list B -> option C) (T : list A) (U : list B) : list C :=
    per_key keyA keyB (fun k M N => match M, N with [], [] => [] | _, _ =>
      match encode k (sort M) (sort N) with Some c => [c] | None => [] end end) T U.

  Lemma group_join_stable {A B C} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C} (keyA : A -> K) (keyB : B -> K)
      (encode : K -> list A -> list B -> option C) : stable2 2 2 (group_join keyA keyB encode).
  Proof.
    split; [apply per_key_left|apply per_key_right]; try reflexivity; intros k M; apply one_record_stable.
    - intros T U H. rewrite (sort_canonical T U H). pose proof (Permutation_length H).
      destruct T, U; simpl in *; try lia; reflexivity.
    - intros T. destruct T, M; simpl; try lia; destruct (encode k _ _); simpl; lia.
    - intros T U H. rewrite (sort_canonical T U H). pose proof (Permutation_length H).
      destruct T, U; simpl in *; try lia; reflexivity.
    - intros T. destruct M, T; simpl; try lia; destruct (encode k _ _); simpl; lia.
  Qed.

  (** *** Semi-join and anti-join: keep the rows of T whose key occurs in U, or
      those whose key does not.  Stable in T; in U one record may let in any
      number of rows, see [semi_join_unbounded]. *)
  Definition semi_join {A B} (keep : bool) (keyA : A -> K) (keyB : B -> K) (T : list A) (U : list B) : list A :=
    filter (fun x => Bool.eqb keep (if in_dec eq_dec (keyA x) (map keyB U) then true else false)) T.

  Lemma semi_join_left {A B} {OA : Ordered A} keep (keyA : A -> K) (keyB : B -> K) U :
    stable 1 (fun T => semi_join keep keyA keyB T U).
  Proof. apply where_stable. Qed.

  Lemma semi_join_bag {A B} keep (keyA : A -> K) (keyB : B -> K) T U U' :
    Permutation U U' -> semi_join keep keyA keyB T U = semi_join keep keyA keyB T U'.
  Proof.
    intros H. unfold semi_join. apply filter_ext. intros x.
    assert (E : In (keyA x) (map keyB U) <-> In (keyA x) (map keyB U')).
    { split; apply Permutation_in; [|symmetry]; apply Permutation_map, H. }
    destruct (in_dec eq_dec (keyA x) (map keyB U)), (in_dec eq_dec (keyA x) (map keyB U')); tauto.
  Qed.
End Keys.

(** ** Two tables, by multiplicity *)

Section Multiplicity.
  Context {A : Type} {O : Ordered A}.

  Definition concat (T U : list A) : list A := T ++ U.
  Definition union_bag (T U : list A) : list A := T ++ minus U T.
  Definition union_set (T U : list A) : list A := distinct (T ++ U).
  Definition intersect_bag (T U : list A) : list A := minus T (minus T U).
  Definition intersect_set (T U : list A) : list A := distinct (intersect_bag T U).
  Definition except_bag (T U : list A) : list A := minus T U.
  Definition except_set (T U : list A) : list A := minus (distinct T) U.

  Lemma count_union_bag T U x : count (union_bag T U) x = Nat.max (count T x) (count U x).
  Proof. unfold union_bag. rewrite count_app, count_minus. lia. Qed.

  Lemma count_intersect_bag T U x : count (intersect_bag T U) x = Nat.min (count T x) (count U x).
  Proof. unfold intersect_bag. rewrite !count_minus. lia. Qed.

  Local Ltac by_multiplicity :=
    split; intros; intros ? ?; rewrite Nat.mul_1_l; apply distance_pointwise; intros;
    unfold concat, union_set, intersect_set, except_bag, except_set, distinct;
    rewrite ?count_nodup, ?count_union_bag, ?count_intersect_bag, ?count_minus, ?count_app, ?count_nodup;
    unfold apart; lia.

  Lemma concat_stable : stable2 1 1 concat.
  Proof. by_multiplicity. Qed.

  Lemma union_bag_stable : stable2 1 1 union_bag.
  Proof. by_multiplicity. Qed.

  Lemma union_set_stable : stable2 1 1 union_set.
  Proof. by_multiplicity. Qed.

  Lemma intersect_bag_stable : stable2 1 1 intersect_bag.
  Proof. by_multiplicity. Qed.

  Lemma intersect_set_stable : stable2 1 1 intersect_set.
  Proof. by_multiplicity. Qed.

  Lemma except_bag_stable : stable2 1 1 except_bag.
  Proof. by_multiplicity. Qed.

  Lemma except_set_stable : stable2 1 1 except_set.
  Proof. by_multiplicity. Qed.
End Multiplicity.

(** ** The constants are tight

    Each line gives two neighbouring bags of numbers that a transformation
    drives apart by its full constant, so that no smaller one is sound. *)

Definition attains {A B} {OA : Ordered A} {OB : Ordered B} (c : nat) (F : list A -> list B) T U : Prop :=
  distance T U = 1 /\ distance (F T) (F U) = c.

Lemma attains_tight {A B} {OA : Ordered A} {OB : Ordered B} c c' (F : list A -> list B) T U :
  attains c F T U -> stable c' F -> c <= c'.
Proof. intros [H K] HF. specialize (HF T U). lia. Qed.

Section Tight.
  Let key (x : nat) : nat := x / 10.
  Let size (k : nat) (M : list nat) : nat := 10 * k + length M.
  Let sizes (k : nat) (M N : list nat) : option nat := Some (100 * k + 10 * length M + length N).

  Example identity_tight : attains 1 (fun T : list nat => T) [7] [].
  Proof. split; reflexivity. Qed.

  Example select_tight : attains 1 (select S) [7] [].
  Proof. split; reflexivity. Qed.

  Example where_tight : attains 1 (where_ Nat.odd) [7] [].
  Proof. split; reflexivity. Qed.

  Example distinct_tight : attains 1 distinct [7] [].
  Proof. split; reflexivity. Qed.

  (** For every k. *)
  Lemma select_many_tight k : attains k (select_many k (fun x : nat => repeat x k)) [7] [].
  Proof.
    split; [reflexivity|]. simpl. rewrite app_nil_r, distance_nil_r, firstn_length, repeat_length. lia.
  Qed.

  Lemma flatten_tight k : attains k (flatten k (fun x : nat => repeat x k)) [7] [].
  Proof. apply select_many_tight. Qed.

  Example take_tight : attains 2 (take 2) [3; 4; 5] [4; 5].
  Proof. split; reflexivity. Qed.

  Example group_by_tight : attains 2 (group_by key size) [11; 12] [11].
  Proof. split; reflexivity. Qed.

  Example limit_per_key_tight : attains 2 (limit_per_key 1 key) [11; 12] [12].
  Proof. split; reflexivity. Qed.

  Example unique_by_tight : attains 1 (unique_by key) [11; 12] [11].
  Proof. split; reflexivity. Qed.

  Example concat_tight : attains 1 (fun T => concat T [5]) [7] [] /\ attains 1 (concat [5]) [7] [].
  Proof. repeat split; reflexivity. Qed.

  Example union_bag_tight : attains 1 (fun T => union_bag T [5]) [7] [] /\ attains 1 (union_bag [5]) [7] [].
  Proof. repeat split; reflexivity. Qed.

  Example union_set_tight : attains 1 (fun T => union_set T [5]) [7] [] /\ attains 1 (union_set [5]) [7] [].
  Proof. repeat split; reflexivity. Qed.

  Example intersect_bag_tight : attains 1 (fun T => intersect_bag T [7]) [7] [] /\
    attains 1 (intersect_bag [7]) [7] [].
  Proof. repeat split; reflexivity. Qed.

  Example intersect_set_tight : attains 1 (fun T => intersect_set T [7]) [7] [] /\
    attains 1 (intersect_set [7]) [7] [].
  Proof. repeat split; reflexivity. Qed.

  (** The second argument of [except] is not free. *)
  Example except_bag_tight : attains 1 (fun T => except_bag T [5]) [7] [] /\ attains 1 (except_bag [7]) [7] [].
  Proof. repeat split; reflexivity. Qed.

  Example except_set_tight : attains 1 (fun T => except_set T [5]) [7] [] /\ attains 1 (except_set [7]) [7] [].
  Proof. repeat split; reflexivity. Qed.

  Example group_join_tight :
    attains 2 (fun T => group_join key key sizes T [13]) [11; 12] [11] /\
    attains 2 (group_join key key sizes [13]) [11; 12] [11].
  Proof. repeat split; reflexivity. Qed.

  Example partition_tight :
    total [1; 2] (fun k => distance (members key k [11; 21]) (members key k [11])) = distance [11; 21] [11].
  Proof. reflexivity. Qed.

  (** Why a partition refuses a key that is listed twice. *)
  Example partition_duplicates :
    total [1; 1] (fun k => distance (members key k [11]) (members key k [])) = 2 /\ distance [11] [] = 1.
  Proof. split; reflexivity. Qed.

  Example semi_join_tight keep : attains 1 (fun T => semi_join keep key key T (if keep then [11] else [])) [12] [].
  Proof. destruct keep; split; reflexivity. Qed.

  (** A semi-join has no finite constant in its second argument. *)
  Theorem semi_join_unbounded keep c : ~ forall T, stable c (semi_join keep key key T).
  Proof.
    intros H. specialize (H (repeat 11 (S c)) [11] []). replace (distance [11] []) with 1 in H by reflexivity.
    assert (K : forall (p : nat -> bool) n, filter p (repeat 11 n) = if p 11 then repeat 11 n else []).
    { intros p n. induction n as [|n IH]; simpl; [destruct (p 11); reflexivity|].
      destruct (p 11) eqn:E; rewrite IH; reflexivity. }
    unfold semi_join in H. rewrite !K in H. destruct keep.
    - change (distance (repeat 11 (S c)) [] <= c * 1) in H. rewrite distance_nil_r, repeat_length in H. lia.
    - change (distance [] (repeat 11 (S c)) <= c * 1) in H. rewrite distance_nil_l, repeat_length in H. lia.
  Qed.
End Tight.
