(** * Plans inside one person

    A root's records may be persons, each with rows of several tables.  A plan
    over one person's rows is run for every person, and what it gives is put
    together: [Flatten].  Its stability is the most rows that the plan can give
    for one person, whatever those rows are.

    [rows_at_most] is that number, transformation by transformation, as in
    [model/transformations.py] and [model/plans.py]; [plan_rows] proves it, and
    [persons_stable] that it is Flatten's constant. *)

Require Import List Arith Lia Permutation.
Require Import Fpinq.Bags Fpinq.Stability Fpinq.Join Fpinq.Plans.
Import ListNotations.

(** ** How many rows *)

Lemma filter_rows {A} (p : A -> bool) T : length (filter p T) <= length T.
Proof. induction T as [|x T IH]; simpl; auto. destruct (p x); simpl; lia. Qed.

Lemma distinct_rows {A} {O : Ordered A} (T : list A) : length (distinct T) <= length T.
Proof. unfold distinct. induction T as [|x T IH]; simpl; auto. destruct (in_dec eq_dec x T); simpl; lia. Qed.

Lemma flat_map_rows {A B} (g : A -> list B) X : length (flat_map g X) = total X (fun x => length (g x)).
Proof. induction X as [|x X IH]; simpl; auto. rewrite app_length, IH. reflexivity. Qed.

Lemma total_const {A} (X : list A) c f : (forall x, f x <= c) -> total X f <= c * length X.
Proof. intros H. induction X as [|x X IH]; simpl; [lia|]. specialize (H x). lia. Qed.

Lemma minus_rows {A} {O : Ordered A} (T U : list A) : length (minus T U) <= length T.
Proof.
  revert T. induction U as [|x U IH]; intros T; simpl; auto. specialize (IH (remove_one x T)).
  assert (length (remove_one x T) <= length T); [|lia].
  clear IH. induction T as [|y T IH]; simpl; auto. destruct (eq_dec y x); simpl; lia.
Qed.

Lemma intersect_rows {A} {O : Ordered A} (T U : list A) :
  length (intersect_bag T U) <= length T /\ length (intersect_bag T U) <= length U.
Proof.
  split; [apply minus_rows|]. replace (length (intersect_bag T U)) with (length (intersect_bag U T)); [apply minus_rows|].
  apply Permutation_length, same_bag. intros x. rewrite !count_intersect_bag. lia.
Qed.

Section Keys.
  Context {A B C K : Type} {OK : Ordered K} (keyA : A -> K) (keyB : B -> K).

  Lemma keys_number T U : length (nodup eq_dec (map keyA T ++ map keyB U)) <= length T + length U.
  Proof.
    pose proof (distinct_rows (map keyA T ++ map keyB U)) as H. unfold distinct in H.
    rewrite app_length, !map_length in H. exact H.
  Qed.

  Lemma per_key_rows (g : K -> list A -> list B -> list C) T U : (forall k M N, length (g k M N) <= 1) ->
    length (per_key keyA keyB g T U) <= length T + length U.
  Proof.
    intros H. unfold per_key. rewrite flat_map_rows. pose proof (keys_number T U).
    pose proof (total_const (nodup eq_dec (map keyA T ++ map keyB U))  1
      (fun k => length (g k (members keyA k T) (members keyB k U))) ltac:(intros; apply H)). lia.
  Qed.
End Keys.

Lemma each_key_rows {A C K} {OK : Ordered K} (key : A -> K) (g : K -> list A -> list C) T :
  (forall k M, length (g k M) <= length M) -> length (each_key key g T) <= length T.
Proof.
  intros H. unfold each_key, per_key. rewrite flat_map_rows. eapply Nat.le_trans.
  - apply (total_le _ _ (fun k => length (members key k T))). intros k _. apply H.
  - apply total_members, NoDup_nodup.
Qed.

Lemma join_rows {A B C D E K} {OK : Ordered K} (keyA : A -> K) (keyB : B -> K) (pair : D -> E -> C) left right T U L R :
  (forall k, length (left k (members keyA k T)) <= length (members keyA k T) /\ length (left k (members keyA k T)) <= L) ->
  (forall k, length (right k (members keyB k U)) <= length (members keyB k U) /\ length (right k (members keyB k U)) <= R) ->
  length (join keyA keyB pair left right T U) <= Nat.min (length T * R) (length U * L).
Proof.
  intros HL HR. unfold join, per_key. rewrite flat_map_rows. set (X := nodup eq_dec _).
  assert (N : NoDup X) by apply NoDup_nodup.
  assert (P : forall M P, length (pairs pair M P) = length M * length P).
  { intros M P'. unfold pairs. induction M as [|x M IH]; simpl; auto. rewrite app_length, map_length, IH. reflexivity. }
  apply Nat.min_glb.
  - eapply Nat.le_trans; [apply (total_le X _ (fun k => R * length (members keyA k T)))|].
    + intros k _. rewrite P. destruct (HL k), (HR k). nia.
    + rewrite total_mul. pose proof (total_members keyA X T N). nia.
  - eapply Nat.le_trans; [apply (total_le X _ (fun k => L * length (members keyB k U)))|].
    + intros k _. rewrite P. destruct (HL k), (HR k). nia.
    + rewrite total_mul. pose proof (total_members keyB X U N). nia.
Qed.

(** An outer join: every left row at least once, and at most once more than it
    meets rows. *)
Lemma outer_rows {A B C D E K} {OK : Ordered K} (keyA : A -> K) (keyB : B -> K) (pair : D -> E -> C) nothing left right T U L R :
  (forall k, length (left k (members keyA k T)) <= length (members keyA k T) /\ length (left k (members keyA k T)) <= L) ->
  (forall k, length (right k (members keyB k U)) <= length (members keyB k U) /\ length (right k (members keyB k U)) <= R) ->
  length (join keyA keyB pair left (fun k N => or_nothing nothing (right k N)) T U) <=
    Nat.min (length T * Nat.max R 1) (length T + length U * L).
Proof.
  intros HL HR. unfold join, per_key. rewrite flat_map_rows. set (X := nodup eq_dec _).
  assert (N : NoDup X) by apply NoDup_nodup.
  assert (P : forall M P, length (pairs pair M P) = length M * length P).
  { intros M P'. unfold pairs. induction M as [|x M IH]; simpl; auto. rewrite app_length, map_length, IH. reflexivity. }
  apply Nat.min_glb.
  - eapply Nat.le_trans; [apply (total_le X _ (fun k => Nat.max R 1 * length (members keyA k T)))|].
    + intros k _. rewrite P. destruct (HL k), (HR k). pose proof (or_nothing_rows nothing (right k (members keyB k U))). nia.
    + rewrite total_mul. pose proof (total_members keyA X T N). nia.
  - eapply Nat.le_trans; [apply (total_le X _ (fun k => length (members keyA k T) + L * length (members keyB k U)))|].
    + intros k _. rewrite P. destruct (HL k) as [H1 H2], (HR k) as [H3 _].
      unfold or_nothing. destruct (right k (members keyB k U)) as [|y N']; cbn [length] in *; nia.
    + rewrite total_add, total_mul. pose proof (total_members keyA X T N). pose proof (total_members keyB X U N). nia.
Qed.

(** ** Transformation by transformation *)

Section Persons.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  Definition least (n : nat) (m : mode) : nat := match mode_rows m with Some k => Nat.min n k | None => n end.

  Definition rows_at_most (s : shape) : arguments (record := record) s -> list nat -> nat :=
    let one (f : nat -> nat) (ns : list nat) := match ns with [n] => f n | _ => 0 end in
    let two (f : nat -> nat -> nat) (ns : list nat) := match ns with [l; r] => f l r | _ => 0 end in
    match s with
    | Literal => fun T _ => length T
    | Identity | Select | Where | Distinct | UniqueBy => fun _ => one (fun n => n)
    | SelectMany k | Flatten k => fun _ => one (fun n => k * n)
    | Take k | LimitPerKey k NoKey => fun _ => one (fun n => Nat.min k n)
    | LimitPerKey k SomeKey | LimitPerKey k WholeRecord => fun _ => one (fun n => n)
    | GroupBy true _ => fun _ => one (fun n => n)
    | GroupBy false _ => fun _ => one (fun n => Nat.min n 1)
    | Concat | Union _ | GroupJoin _ _ => fun _ => two Nat.add
    | Intersect _ => fun _ => two Nat.min
    | Except _ | SemiJoin _ => fun _ => two (fun l _ => l)
    | Join l _ r _ => fun _ => two (fun n m => Nat.min (n * least m r) (m * least n l))
    | OuterJoin l _ r _ => fun _ => two (fun n m => Nat.min (n * Nat.max (least m r) 1) (n + m * least n l))
    end.

  Definition fitting (T : table) (n : nat) : Prop := length T <= n.

  Lemma unary_rows F f Ts ns : (forall T n, fitting T n -> length (F T) <= f n) -> Forall2 fitting Ts ns ->
    length (unary F Ts) <= match ns with [n] => f n | _ => 0 end.
  Proof. intros H K. destruct K as [|T n Ts ns HT K]; simpl; auto. destruct K; simpl; auto. Qed.

  Lemma binary_rows F f Ts ns : (forall T n U m, fitting T n -> fitting U m -> length (F T U) <= f n m) ->
    Forall2 fitting Ts ns -> length (binary F Ts) <= match ns with [n; m] => f n m | _ => 0 end.
  Proof.
    intros H K. destruct K as [|T n Ts ns HT K]; simpl; auto. destruct K as [|U m Ts ns HU K]; simpl; auto.
    destruct K; simpl; auto.
  Qed.

  Lemma joinable_rows key (T : table) n : fitting T n -> fitting (joinable key T) n.
  Proof. unfold fitting, joinable, where_. intros H. pose proof (filter_rows (fun x => match key x with
    Some _ => true | None => false end) T). lia. Qed.

  Lemma side_least m s k (M : table) n : length M <= n -> length (side m s k M) <= least n m.
  Proof.
    intros H. pose proof (side_length m s k M). pose proof (cut_length m M). unfold least.
    destruct (mode_rows m) as [r|] eqn:E; [|lia]. pose proof (side_rows m s r E k M). lia.
  Qed.

  Theorem transformation_rows s f Ts ns : Forall2 fitting Ts ns -> length (meaning s f Ts) <= rows_at_most s f ns.
  Proof.
    intros H. unfold fitting in *. destruct s; cbn [meaning rows_at_most arguments] in *.
    - unfold literal. lia.
    - apply (unary_rows _ (fun n => n)); auto.
    - apply (unary_rows _ (fun n => n)); auto. intros T n HT. unfold select. rewrite map_length. exact HT.
    - apply (unary_rows _ (fun n => n)); auto. intros T n HT. eapply Nat.le_trans; [apply filter_rows|exact HT].
    - apply (unary_rows _ (fun n => n)); auto. intros T n HT. eapply Nat.le_trans; [apply distinct_rows|exact HT].
    - apply (unary_rows _ (fun n => k * n)); auto. intros T n HT. unfold select_many. rewrite flat_map_rows.
      eapply Nat.le_trans; [apply (total_const T k); intros; rewrite firstn_length; lia|]. unfold fitting in HT. nia.
    - apply (unary_rows _ (fun n => Nat.min k n)); auto. intros T n HT. rewrite take_counts. unfold fitting in HT. lia.
    - destruct keyed; cbn [arguments] in f.
      + destruct f as [key encode]. apply (unary_rows _ (fun n => n)); auto. intros T n HT.
        eapply Nat.le_trans; [|exact HT]. apply each_key_rows. intros k [|x M]; simpl; lia.
      + apply (unary_rows _ (fun n => Nat.min n 1)); auto. intros T n HT. unfold group_all, fitting in *.
        destruct T; simpl in *; lia.
    - destruct by_; cbn [arguments] in f.
      + apply (unary_rows _ (fun n => Nat.min k n)); auto. intros T n HT. rewrite take_counts. unfold fitting in HT. lia.
      + apply (unary_rows _ (fun n => n)); auto. intros T n HT. eapply Nat.le_trans; [|exact HT].
        apply each_key_rows. intros _ M. rewrite take_counts. lia.
      + apply (unary_rows _ (fun n => n)); auto. intros T n HT. eapply Nat.le_trans; [|exact HT].
        apply each_key_rows. intros _ M. rewrite take_counts. lia.
    - apply (unary_rows _ (fun n => n)); auto. intros T n HT. eapply Nat.le_trans; [|exact HT].
      apply each_key_rows. intros _ [|x [|y M]]; simpl; lia.
    - apply (binary_rows _ Nat.add); auto. intros T n U m HT HU. unfold concat. rewrite app_length. unfold fitting in *. lia.
    - destruct d; apply (binary_rows _ Nat.add); auto; intros T n U m HT HU; unfold fitting in *.
      + unfold union_bag. rewrite app_length. pose proof (minus_rows U T). lia.
      + unfold union_set. pose proof (distinct_rows (T ++ U)). rewrite app_length in *. lia.
    - destruct d; apply (binary_rows _ Nat.min); auto; intros T n U m HT HU; unfold fitting in *;
        pose proof (intersect_rows T U); [lia|]. unfold intersect_set. pose proof (distinct_rows (intersect_bag T U)). lia.
    - destruct d; apply (binary_rows _ (fun l _ => l)); auto; intros T n U m HT HU; unfold fitting in *.
      + unfold except_bag. pose proof (minus_rows T U). lia.
      + unfold except_set. pose proof (minus_rows (distinct T) U). pose proof (distinct_rows T). lia.
    - destruct f as [keyA keyB]. apply (binary_rows _ (fun l _ => l)); auto. intros T n U m HT _.
      eapply Nat.le_trans; [apply filter_rows|exact HT].
    - destruct f as [[keyA keyB] encode]. apply (binary_rows _ Nat.add); auto. intros T n U m HT HU.
      apply (joinable_rows keyA) in HT. apply (joinable_rows keyB) in HU. unfold fitting in *.
      unfold group_join_on, group_join. eapply Nat.le_trans; [apply per_key_rows|lia].
      intros k M N. destruct M, N; simpl; try lia; destruct k; simpl; try lia; destruct (encode _ _ _); simpl; lia.
    - destruct f as [[keyA keyB] merge].
      apply (binary_rows _ (fun n m => Nat.min (n * least m right) (m * least n left))); auto.
      intros T n U m HT HU. apply (joinable_rows keyA) in HT. apply (joinable_rows keyB) in HU. unfold fitting in *.
      unfold join_on. eapply Nat.le_trans; [apply (join_rows keyA keyB merge _ _ _ _ (least n left) (least m right))|nia].
      + intros k. split; [pose proof (side_length left seen_left k (members keyA k (joinable keyA T)));
          pose proof (cut_length left (members keyA k (joinable keyA T))); lia|].
        apply side_least. eapply Nat.le_trans; [apply members_length|exact HT].
      + intros k. split; [pose proof (side_length right seen_right k (members keyB k (joinable keyB U)));
          pose proof (cut_length right (members keyB k (joinable keyB U))); lia|].
        apply side_least. eapply Nat.le_trans; [apply members_length|exact HU].
    - destruct f as [[[[keyA keyB] null] nothing] merge].
      apply (binary_rows _ (fun n m => Nat.min (n * Nat.max (least m right) 1) (n + m * least n left))); auto.
      intros T n U m HT HU. unfold fitting in *. unfold outer_join_on.
      set (V := where_ (fun y => negb (null (keyB y))) U).
      assert (HV : length V <= m) by (eapply Nat.le_trans; [apply filter_rows|exact HU]).
      eapply Nat.le_trans; [apply (outer_rows keyA keyB merge nothing (fun k => side left seen_left (Some k))
        (fun k => side right seen_right (Some k)) T V (least n left) (least m right))|].
      + intros k. split; [pose proof (side_length left seen_left (Some k) (members keyA k T));
          pose proof (cut_length left (members keyA k T)); lia|].
        apply side_least. eapply Nat.le_trans; [apply members_length|exact HT].
      + intros k. split; [pose proof (side_length right seen_right (Some k) (members keyB k V));
          pose proof (cut_length right (members keyB k V)); lia|].
        apply side_least. eapply Nat.le_trans; [apply members_length|exact HV].
      + apply Nat.min_glb; [eapply Nat.le_trans; [apply Nat.le_min_l|nia]|eapply Nat.le_trans; [apply Nat.le_min_r|nia]].
    - apply (unary_rows _ (fun n => k * n)); auto. intros T n HT. unfold flatten, select_many. rewrite flat_map_rows.
      eapply Nat.le_trans; [apply (total_const T k); intros; rewrite firstn_length; lia|]. unfold fitting in HT. nia.
  Qed.

  (** ** Plans *)

  (** [Own t k]: the first k of the person's rows of table t. *)
  Inductive plan := Own (t k : nat) | Term (s : shape) (f : arguments (record := record) s) (ps : list plan).

  Fixpoint plan_at_most (p : plan) : nat :=
    match p with Own _ k => k | Term s f ps => rows_at_most s f (map plan_at_most ps) end.

  Fixpoint give (person : nat -> table) (p : plan) : table :=
    match p with Own t k => take k (person t) | Term s f ps => meaning s f (map (give person) ps) end.

  Theorem plan_rows person : forall p, length (give person p) <= plan_at_most p.
  Proof.
    fix IH 1. intros [t k|s f ps]; cbn [give plan_at_most]; [apply take_length|].
    apply transformation_rows. induction ps as [|p ps IHs]; simpl; constructor; [apply IH|exact IHs].
  Qed.

  (** ** Flatten *)

  Context {person : Type} {OP : Ordered person}.
  Variable tables : person -> nat -> table.

  Definition every_person (p : plan) (T : list person) : table := flat_map (fun x => give (tables x) p) T.

  (** [Flatten] with this constant cuts nothing. *)
  Theorem flatten_is_every_person p T :
    flatten (plan_at_most p) (fun x => give (tables x) p) T = every_person p T.
  Proof. apply flat_map_ext. intros x. apply firstn_all2, plan_rows. Qed.

  Theorem persons_stable p : stable (plan_at_most p) (every_person p).
  Proof. intros T U. rewrite <- !flatten_is_every_person. apply flatten_stable. Qed.
End Persons.

(** In the registry, where a person is a record whose tables can be read off. *)
Corollary flatten_of_a_plan {record} {O : Ordered record} (tables : record -> nat -> list record) p T :
  meaning (Flatten (plan_at_most p)) (fun x => give (tables x) p) [T] = every_person tables p T /\
  stability (Flatten (plan_at_most p)) = [Some (plan_at_most p)].
Proof. split; [apply flatten_is_every_person|reflexivity]. Qed.

(** ** Attained

    One person's plan may give all the rows that it is allowed. *)
Section Tight.
  Let person (x : nat) (_ : nat) : list nat := [x; x + 1; x + 2].
  Let key (x : nat) : option nat := Some 0.

  Example own_tight : attains 2 (every_person person (Own 0 2)) [7] [].
  Proof. split; reflexivity. Qed.

  Example group_all_tight : attains 1 (every_person person (Term (GroupBy false Rows) (@length nat) [Own 0 3])) [7] [].
  Proof. split; reflexivity. Qed.

  Example select_many_inside_tight :
    attains 6 (every_person person (Term (SelectMany 2) (fun x => [x; x]) [Own 0 3])) [7] [].
  Proof. split; reflexivity. Qed.

  Example join_inside_tight :
    attains 6 (every_person person (Term (Join (First 9) Rows (First 2) Rows) (key, key, fun x y => 10 * x + y)
      [Own 0 3; Own 1 3])) [7] [].
  Proof. split; reflexivity. Qed.
End Tight.
