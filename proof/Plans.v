(** * The registry of transformations

    [model/transformations.py] in Coq: the transformations under their Python names, the
    stability each declares, and the proof that every declaration is sound.  A
    constant [None] stands for infinity: no number of changed records bounds
    the change of the output, and the argument must be public.

    Null keys.  A null is a key like any other where records are grouped,
    limited, made unique or partitioned: there a key is just a record.  It joins
    nothing: a join's key is a record or null, [None], and rows without a key
    are left out first.  A semi-join keeps none of them, an anti-join all. *)

Require Import List Arith Lia Permutation Bool.
Require Import Fpinq.Bags Fpinq.Stability Fpinq.Join Fpinq.Seen.
Import ListNotations.

(** How a join cuts one of its sides, per key. *)
Inductive mode := First (k : nat) | Unique | All.

(** Whether duplicates count. *)
Inductive kind := OfBags | OfSets.

(** What is made of the members of a key: something of their rows, or of the
    key alone. *)
Inductive sight := Rows | Key.

(** Which key: none, some, or one that tells the whole record. *)
Inductive key_kind := NoKey | SomeKey | WholeRecord.

Inductive shape :=
  | Literal
  | Identity
  | Select
  | Where
  | Distinct
  | SelectMany (k : nat)
  | Take (k : nat)
  | GroupBy (keyed : bool) (seen : sight)
  | LimitPerKey (k : nat) (by_ : key_kind)
  | UniqueBy
  | Concat
  | Union (d : kind)
  | Intersect (d : kind)
  | Except (d : kind)
  | SemiJoin (keep : bool)
  | GroupJoin (left right : sight)
  | Join (left : mode) (seen_left : sight) (right : mode) (seen_right : sight)
  | OuterJoin (left : mode) (seen_left : sight) (right : mode) (seen_right : sight)
  | Flatten (k : nat).

(** ** Declared stabilities *)

Definition mode_stability (m : mode) (s : sight) : nat := match m, s with First _, Rows => 2 | _, _ => 1 end.
Definition mode_rows (m : mode) : option nat := match m with First k => Some k | Unique => Some 1 | All => None end.

Definition join_constant (cut : mode) (seen : sight) (other : mode) : option nat :=
  option_map (Nat.mul (mode_stability cut seen)) (mode_rows other).

(** A left row beside nothing is a row too. *)
Definition outer_left (cut : mode) (seen : sight) (other : mode) : option nat :=
  option_map (fun n => mode_stability cut seen * Nat.max 1 n) (mode_rows other).
Definition outer_right (other : mode) : option nat := option_map (Nat.mul 2) (mode_rows other).

Definition sight_stability (s : sight) : nat := match s with Rows => 2 | Key => 1 end.

Definition stability (s : shape) : list (option nat) :=
  match s with
  | Literal => []
  | Identity | Select | Where | Distinct => [Some 1]
  | SelectMany k => [Some k]
  | Take _ => [Some 2]
  | GroupBy _ seen => [Some (sight_stability seen)]
  | LimitPerKey _ WholeRecord => [Some 1]
  | LimitPerKey _ _ => [Some 2]
  | UniqueBy => [Some 1]
  | Concat | Union _ | Intersect _ | Except _ => [Some 1; Some 1]
  | SemiJoin _ => [Some 1; None]
  | GroupJoin l r => [Some (sight_stability l); Some (sight_stability r)]
  | Join l sl r sr => [join_constant l sl r; join_constant r sr l]
  | OuterJoin l sl r _ => [outer_left l sl r; outer_right l]
  | Flatten k => [Some k]
  end.

(** ** Meaning *)

(** Keys of a join: null comes first in the canonical order. *)
#[global] Instance ordered_option {A} {O : Ordered A} : Ordered (option A).
Proof.
  refine {| leb := fun x y => match x, y with None, _ => true | Some _, None => false | Some x, Some y => leb x y end |}.
  - intros [x|] [y|]; auto. apply leb_total.
  - intros [x|] [y|] [z|]; try discriminate; auto. apply leb_trans.
  - intros [x|] [y|]; try discriminate; auto. intros H K. f_equal. apply leb_antisym; assumption.
Defined.

Section Meaning.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** What the program supplies besides the numbers in the shape.  Keys are
      records too. *)
  Definition join_key := record -> option record.
  Definition look (s : sight) : Type := match s with Rows => list record | Key => unit end.

  Definition arguments (s : shape) : Type :=
    match s with
    | Literal => table
    | Identity | Distinct | Take _ | Concat | Union _ | Intersect _ | Except _ => unit
    | Select => record -> record
    | Where => record -> bool
    | SelectMany _ | Flatten _ => record -> list record
    | GroupBy true seen => (record -> record) * (record -> look seen -> record)
    | GroupBy false seen => look seen -> record
    | LimitPerKey _ NoKey => unit
    | LimitPerKey _ SomeKey => record -> record
    | LimitPerKey _ WholeRecord => {key : record -> record | forall x y, key x = key y -> x = y}
    | UniqueBy => record -> record
    | SemiJoin _ => join_key * join_key
    | GroupJoin l r => join_key * join_key * (record -> look l -> look r -> option record)
    | Join _ _ _ _ => join_key * join_key * (record -> record -> record)
    | OuterJoin _ _ _ _ => (record -> record) * (record -> record) * (record -> bool) * record * (record -> record -> record)
    end.

  Definition cut (m : mode) : table -> table :=
    match m with First k => take k | Unique => unique | All => fun M => M end.

  Definition see (s : sight) : table -> look s := match s with Rows => fun M => M | Key => fun _ => tt end.

  (** The rows that have a key. *)
  Definition joinable (key : join_key) (T : table) : table :=
    where_ (fun x => match key x with Some _ => true | None => false end) T.

  (** All in one group. *)
  Definition group_all (encode : table -> record) (T : table) : table :=
    match T with [] => [] | _ => [encode (sort T)] end.

  (** What a join sees of the rows of a key that it keeps; every row kept has one. *)
  Definition side (m : mode) (s : sight) (k : option record) (M : table) : table :=
    match s, k with Rows, _ => rows (cut m) k M | Key, Some k => keys (cut m) k M | Key, None => [] end.

  Definition unary (F : table -> table) (Ts : list table) : table := match Ts with [T] => F T | _ => [] end.
  Definition binary (F : table -> table -> table) (Ts : list table) : table :=
    match Ts with [T; U] => F T U | _ => [] end.

  Definition group_join_on {l r} (keyA keyB : join_key) (encode : record -> look l -> look r -> option record)
      (T U : table) : table :=
    group_join keyA keyB (fun k M N => match k with Some k => encode k (see l M) (see r N) | None => None end)
      (joinable keyA T) (joinable keyB U).

  Definition join_on l sl r sr (keyA keyB : join_key) (merge : record -> record -> record) (T U : table) : table :=
    join keyA keyB merge (side l sl) (side r sr) (joinable keyA T) (joinable keyB U).

  (** Here a left row without a key is kept too, and cut with those of the same
      key, nulls and all; so the keys are whole, and [null] tells which have a
      null in them. *)
  Definition outer_join_on l sl r sr keyA keyB (null : record -> bool) nothing (merge : record -> record -> record)
      (T U : table) : table :=
    join keyA keyB merge (fun k => side l sl (Some k)) (fun k N => or_nothing nothing (side r sr (Some k) N)) T
      (where_ (fun y => negb (null (keyB y))) U).

  (** A row without a key matches none: [Some] of a key is never [None]. *)
  Definition semi_join_on keep (keyA keyB : join_key) (T U : table) : table :=
    semi_join keep keyA keyB T (joinable keyB U).

  Definition meaning (s : shape) : arguments s -> list table -> table :=
    match s with
    | Literal => fun T _ => literal T
    | Identity => fun _ => unary (fun T => T)
    | Select => fun f => unary (select f)
    | Where => fun p => unary (where_ p)
    | Distinct => fun _ => unary distinct
    | SelectMany k => fun f => unary (select_many k f)
    | Take k => fun _ => unary (take k)
    | GroupBy true seen => fun '(key, encode) => unary (group_by key (fun k M => encode k (see seen M)))
    | GroupBy false seen => fun encode => unary (group_all (fun M => encode (see seen M)))
    | LimitPerKey k NoKey => fun _ => unary (take k)
    | LimitPerKey k SomeKey => fun key => unary (limit_per_key k key)
    | LimitPerKey k WholeRecord => fun key => unary (limit_per_key k (proj1_sig key))
    | UniqueBy => fun key => unary (unique_by key)
    | Concat => fun _ => binary concat
    | Union OfBags => fun _ => binary union_bag
    | Union OfSets => fun _ => binary union_set
    | Intersect OfBags => fun _ => binary intersect_bag
    | Intersect OfSets => fun _ => binary intersect_set
    | Except OfBags => fun _ => binary except_bag
    | Except OfSets => fun _ => binary except_set
    | SemiJoin keep => fun '(keyA, keyB) => binary (semi_join_on keep keyA keyB)
    | GroupJoin l r => fun '(keyA, keyB, encode) => binary (group_join_on keyA keyB encode)
    | Join l sl r sr => fun '(keyA, keyB, merge) => binary (join_on l sl r sr keyA keyB merge)
    | OuterJoin l sl r sr => fun '(keyA, keyB, null, nothing, merge) =>
        binary (outer_join_on l sl r sr keyA keyB null nothing merge)
    | Flatten k => fun rows => unary (flatten k rows)
    end.

  (** ** Soundness *)

  (** F keeps what the constant promises: c times the distance, or, for an
      infinite constant, at least that equal bags give equal bags. *)
  Definition keeps (c : option nat) (F : table -> table) : Prop :=
    match c with Some c => stable c F | None => forall T U, distance T U = 0 -> distance (F T) (F U) = 0 end.

  Lemma cut_stable m : stable (mode_stability m Rows) (cut m).
  Proof. destruct m; simpl; auto using take_stable, unique_stable, identity_stable. Qed.

  Lemma nothing_stable c : stable c (fun _ : table => @nil record).
  Proof. intros T U. rewrite distance_refl. lia. Qed.

  Lemma side_stable m s k : stable (mode_stability m s) (side m s k).
  Proof.
    unfold side. destruct s; [apply cut_stable|]. destruct k as [k|]; [|apply nothing_stable].
    destruct m; [apply keys_take_stable|apply keys_stable, unique_stable|apply keys_stable, identity_stable].
  Qed.

  Lemma cut_nil m : cut m [] = [].
  Proof. destruct m; simpl; auto using take_nil. Qed.

  Lemma side_nil m s k : side m s k [] = [].
  Proof. unfold side, rows, keys. rewrite cut_nil. destruct s, k; reflexivity. Qed.

  Lemma side_length m s k M : length (side m s k M) <= length (cut m M).
  Proof. unfold side, rows, keys. destruct s, k; rewrite ?map_length; simpl; lia. Qed.

  Lemma cut_length m M : length (cut m M) <= length M.
  Proof.
    destruct m; simpl; auto; [rewrite take_counts; lia|]. destruct M as [|x [|y M]]; simpl; lia.
  Qed.

  Lemma side_rows m s n : mode_rows m = Some n -> forall k M, length (side m s k M) <= n.
  Proof.
    intros E k M. eapply Nat.le_trans; [apply side_length|].
    destruct m; simpl in *; inversion E; subst; auto using take_length, unique_length.
  Qed.

  Lemma members_length {K} {OK : Ordered K} (key : record -> K) k T : length (members key k T) <= length T.
  Proof. unfold members. induction T as [|x T IH]; simpl; auto. destruct (is k (key x)); simpl; lia. Qed.

  (** Leaving out rows without a key first changes no constant. *)
  Lemma joinable_keeps c key F : keeps c F -> keeps c (fun T => F (joinable key T)).
  Proof.
    destruct c as [c|]; simpl; intros H.
    - replace c with (c * 1) by lia. apply (stable_compose 1 c (joinable key) F); auto. apply where_stable.
    - intros T U E. apply H. pose proof (where_stable (fun x => match key x with Some _ => true | None => false end) T U)
        as W. unfold joinable. lia.
  Qed.

  (** For "all", the longest group at hand bounds this pair of tables. *)
  Lemma join_keeps_left (keyA keyB : join_key) pair l sl r sr U :
    keeps (join_constant l sl r) (fun T => join keyA keyB pair (side l sl) (side r sr) T U).
  Proof.
    unfold join_constant. destruct (mode_rows r) as [n|] eqn:E; simpl.
    - apply join_left; auto using side_stable, side_nil. apply side_rows, E.
    - intros T T' H. apply distance_zero. apply distance_zero in H.
      apply stable_bag with (c := mode_stability l sl * length U)
        (F := fun T => join keyA keyB pair (side l sl) (fun k N => firstn (length U) (side r sr k N)) T U) in H.
      + assert (K : forall T, join keyA keyB pair (side l sl) (fun k N => firstn (length U) (side r sr k N)) T U
                              = join keyA keyB pair (side l sl) (side r sr) T U).
        { intros V. unfold join, per_key. apply flat_map_ext. intros k. f_equal. apply firstn_all2.
          eapply Nat.le_trans; [apply side_length|]. eapply Nat.le_trans; [apply cut_length|]. apply members_length. }
        rewrite !K in H. exact H.
      + apply join_left; auto using side_stable, side_nil. intros k N. rewrite firstn_length. lia.
  Qed.

  Lemma join_keeps_right (keyA keyB : join_key) pair l sl r sr T :
    keeps (join_constant r sr l) (join keyA keyB pair (side l sl) (side r sr) T).
  Proof.
    unfold join_constant. destruct (mode_rows l) as [n|] eqn:E; simpl.
    - apply join_right; auto using side_stable, side_nil. apply side_rows, E.
    - intros U U' H. apply distance_zero. apply distance_zero in H.
      apply stable_bag with (c := mode_stability r sr * length T)
        (F := join keyA keyB pair (fun k M => firstn (length T) (side l sl k M)) (side r sr) T) in H.
      + assert (K : forall U, join keyA keyB pair (fun k M => firstn (length T) (side l sl k M)) (side r sr) T U
                              = join keyA keyB pair (side l sl) (side r sr) T U).
        { intros V. unfold join, per_key. apply flat_map_ext. intros k. f_equal. apply firstn_all2.
          eapply Nat.le_trans; [apply side_length|]. eapply Nat.le_trans; [apply cut_length|]. apply members_length. }
        rewrite !K in H. exact H.
      + apply join_right; auto using side_stable.
        * intros k. rewrite side_nil. apply firstn_nil.
        * intros k M. rewrite firstn_length. lia.
  Qed.

  Lemma semi_join_keeps_right keep (keyA keyB : join_key) T :
    keeps None (semi_join (A := record) (B := record) keep keyA keyB T).
  Proof.
    intros U U' H. apply distance_zero in H. rewrite (semi_join_bag keep keyA keyB T U U' H). apply distance_refl.
  Qed.

  Lemma group_join_keeps_left {l r} (keyA keyB : join_key) (encode : record -> look l -> look r -> option record) U :
    keeps (Some (sight_stability l)) (fun T => group_join_on keyA keyB encode T U).
  Proof.
    apply (joinable_keeps (Some (sight_stability l)) keyA (fun T => group_join keyA keyB _ T (joinable keyB U))).
    destruct l; [apply group_join_stable|]. apply group_join_blind_left. reflexivity.
  Qed.

  Lemma group_join_keeps_right {l r} (keyA keyB : join_key) (encode : record -> look l -> look r -> option record) T :
    keeps (Some (sight_stability r)) (group_join_on keyA keyB encode T).
  Proof.
    apply (joinable_keeps (Some (sight_stability r)) keyB (group_join keyA keyB _ (joinable keyA T))).
    destruct r; [apply group_join_stable|]. apply group_join_blind_right. reflexivity.
  Qed.

  Lemma mode_stability_le m s : mode_stability m s <= 2.
  Proof. destruct m, s; simpl; lia. Qed.

  Lemma side_steps m s k x (N : table) : length (side m s (Some k) (x :: N)) <= S (length (side m s (Some k) N)) /\
    length (side m s (Some k) N) <= S (length (side m s (Some k) (x :: N))).
  Proof.
    assert (E : forall M : table, length (side m s (Some k) M) = length (cut m M)).
    { intros M. unfold side, rows, keys. destruct s; auto. apply map_length. }
    rewrite !E. destruct m; simpl.
    - rewrite !take_counts. simpl. lia.
    - destruct N as [|y [|z N]]; simpl; lia.
    - lia.
  Qed.

  Lemma outer_side_stable m s k nothing : stable 2 (fun N => or_nothing nothing (side m s (Some k) N)).
  Proof.
    apply (or_nothing_stable (mode_stability m s)); [apply mode_stability_le|apply side_stable|apply side_steps].
  Qed.

  Lemma outer_keeps_left l sl r sr keyA keyB null nothing merge U :
    keeps (outer_left l sl r) (fun T => outer_join_on l sl r sr keyA keyB null nothing merge T U).
  Proof.
    unfold outer_left, outer_join_on. destruct (mode_rows r) as [n|] eqn:E; cbn [option_map keeps].
    - apply join_left; [intros; apply side_stable|intros; apply side_nil|]. intros k N.
      cbv beta. pose proof (or_nothing_rows nothing (side r sr (Some k) N)). pose proof (side_rows r sr n E (Some k) N). lia.
    - intros T T' H. apply (join_bag_left keyA keyB merge _ _ (mode_stability l sl)); auto.
      + intros k. apply side_stable.
      + intros k. apply side_nil.
      + intros k N. cbv beta. pose proof (or_nothing_rows nothing (side r sr (Some k) N)).
        pose proof (side_length r sr (Some k) N). pose proof (cut_length r N). lia.
  Qed.

  Lemma outer_keeps_right l sl r sr keyA keyB null nothing merge T :
    keeps (outer_right l) (outer_join_on l sl r sr keyA keyB null nothing merge T).
  Proof.
    unfold outer_right, outer_join_on. destruct (mode_rows l) as [n|] eqn:E; cbn [option_map keeps].
    - assert (J : stable (2 * n) (join keyA keyB merge (fun k => side l sl (Some k))
        (fun k N => or_nothing nothing (side r sr (Some k) N)) T)).
      { apply join_right; [intros; apply outer_side_stable|intros; apply side_nil|]. intros k M. apply side_rows, E. }
      intros U U'. specialize (J (where_ (fun y => negb (null (keyB y))) U) (where_ (fun y => negb (null (keyB y))) U')).
      pose proof (where_stable (fun y => negb (null (keyB y))) U U') as W. nia.
    - intros U U' H. apply (join_bag_right keyA keyB merge _ _ 2).
      + intros k. apply outer_side_stable.
      + intros k. apply side_nil.
      + intros k M. pose proof (side_length l sl (Some k) M). pose proof (cut_length l M). lia.
      + pose proof (where_stable (fun y => negb (null (keyB y))) U U') as W. lia.
  Qed.

  Lemma group_by_keeps seen key (encode : record -> look seen -> record) :
    keeps (Some (sight_stability seen)) (group_by key (fun k M => encode k (see seen M))).
  Proof. destruct seen; [apply group_by_stable|]. exact (group_keys_stable key (fun k => encode k tt)). Qed.

  Lemma group_all_keeps seen (encode : look seen -> record) :
    keeps (Some (sight_stability seen)) (group_all (fun M => encode (see seen M))).
  Proof.
    destruct seen; simpl.
    - apply one_record_stable.
      + intros T U H. unfold group_all. rewrite (sort_canonical T U H). pose proof (Permutation_length H).
        destruct T, U; simpl in *; try lia; reflexivity.
      + intros [|x T]; simpl; lia.
    - apply (present_stable [encode tt]). simpl. lia.
  Qed.

  (** Every declared constant is sound, in every argument, for all functions the
      program may supply. *)
  Theorem stability_sound s (f : arguments s) before after c :
    nth_error (stability s) (length before) = Some c ->
    keeps c (fun T => meaning s f (before ++ T :: after)).
  Proof.
    assert (Z : forall c, keeps c (fun _ : table => [])).
    { intros [d|]; simpl; [intros T U|intros T U _]; rewrite distance_refl; lia. }
    assert (one : forall F d, nth_error [d] (length before) = Some c -> keeps d F ->
      keeps c (fun T => unary F (before ++ T :: after))).
    { intros F d H HF. destruct before as [|P [|Q before]]; try discriminate H.
      injection H as <-. destruct after; [exact HF|apply Z]. }
    assert (two : forall F a b, nth_error [a; b] (length before) = Some c ->
      (forall U, keeps a (fun T => F T U)) -> (forall T, keeps b (F T)) ->
      keeps c (fun T => binary F (before ++ T :: after))).
    { intros F a b H HL HR. destruct before as [|P [|Q [|Q' before]]]; try discriminate H; injection H as <-.
      - destruct after as [|U [|V after]]; [apply Z|exact (HL U)|apply Z].
      - destruct after; [exact (HR P)|apply Z]. }
    intros H. destruct s; cbn [stability] in H; cbn [arguments] in f.
    - destruct before; discriminate H.
    - exact (one _ _ H (identity_stable)).
    - exact (one _ _ H (select_stable f)).
    - exact (one _ _ H (where_stable f)).
    - exact (one _ _ H (distinct_stable)).
    - exact (one _ _ H (select_many_stable k f)).
    - exact (one _ _ H (take_stable k)).
    - destruct keyed; cbn [arguments] in f.
      + destruct f as [key encode]. exact (one _ _ H (group_by_keeps seen key encode)).
      + exact (one _ _ H (group_all_keeps seen f)).
    - destruct by_; cbn [arguments] in f.
      + exact (one _ _ H (take_stable k)).
      + exact (one _ _ H (limit_per_key_stable k f)).
      + destruct f as [key tells]. exact (one _ _ H (limit_copies_stable key tells k)).
    - exact (one _ _ H (unique_by_stable f)).
    - exact (two _ _ _ H (proj1 concat_stable) (proj2 concat_stable)).
    - destruct d.
      + exact (two _ _ _ H (proj1 union_bag_stable) (proj2 union_bag_stable)).
      + exact (two _ _ _ H (proj1 union_set_stable) (proj2 union_set_stable)).
    - destruct d.
      + exact (two _ _ _ H (proj1 intersect_bag_stable) (proj2 intersect_bag_stable)).
      + exact (two _ _ _ H (proj1 intersect_set_stable) (proj2 intersect_set_stable)).
    - destruct d.
      + exact (two _ _ _ H (proj1 except_bag_stable) (proj2 except_bag_stable)).
      + exact (two _ _ _ H (proj1 except_set_stable) (proj2 except_set_stable)).
    - destruct f as [keyA keyB].
      exact (two _ _ _ H (fun U => semi_join_left keep keyA keyB (joinable keyB U))
        (fun T => joinable_keeps None keyB _ (semi_join_keeps_right keep keyA keyB T))).
    - destruct f as [[keyA keyB] encode].
      exact (two _ _ _ H (group_join_keeps_left keyA keyB encode) (group_join_keeps_right keyA keyB encode)).
    - destruct f as [[keyA keyB] merge].
      exact (two _ _ _ H
        (fun U => joinable_keeps _ keyA (fun T => join keyA keyB merge _ _ T (joinable keyB U))
          (join_keeps_left keyA keyB merge left seen_left right seen_right (joinable keyB U)))
        (fun T => joinable_keeps _ keyB _
          (join_keeps_right keyA keyB merge left seen_left right seen_right (joinable keyA T)))).
    - destruct f as [[[[keyA keyB] null] nothing] merge].
      exact (two _ _ _ H (outer_keeps_left left seen_left right seen_right keyA keyB null nothing merge)
        (outer_keeps_right left seen_left right seen_right keyA keyB null nothing merge)).
    - exact (one _ _ H (flatten_stable k f)).
  Qed.
End Meaning.

(** ** Attained

    The constants of shapes that [Stability], [Join] and [Seen] do not show by
    themselves: without a key, and with keys that may be null. *)

Section Tight.
  Let all (Ts : list nat) : nat := length Ts.
  Let key (x : nat) : option nat := if x <? 10 then None else Some (x / 10).
  Let sizes (k : nat) (M N : list nat) : option nat := Some (100 * k + 10 * length M + length N).

  Example group_all_tight :
    attains 2 (fun T => meaning (GroupBy false Rows) all [T]) [11; 12] [11] /\
    attains 1 (fun T => meaning (GroupBy false Key) (fun _ => 5) [T]) [11] [].
  Proof. repeat split; reflexivity. Qed.

  Example limit_without_key_tight : attains 2 (fun T => meaning (LimitPerKey 2 NoKey) tt [T]) [3; 4; 5] [4; 5].
  Proof. split; reflexivity. Qed.

  (** The first row on the right takes nothing's place, beside every row on the
      left that is kept. *)
  Example outer_join_tight :
    attains 2 (fun T => meaning (OuterJoin (First 1) Rows (First 1) Rows)
      (fun x => x / 10, fun x => x / 10, fun _ => false, 0, fun x y => 100 * x + y) [T; []]) [11; 12] [12] /\
    attains 4 (fun U => meaning (OuterJoin (First 2) Rows All Rows)
      (fun x => x / 10, fun x => x / 10, fun _ => false, 0, fun x y => 100 * x + y) [[11; 12]; U]) [13] [].
  Proof. repeat split; reflexivity. Qed.

  (** A row without a key changes nothing; one with a key all that it may. *)
  Example null_keys_join_nothing :
    attains 0 (fun T => meaning (Join (First 1) Rows (First 2) Rows) (key, key, fun x y => 100 * x + y) [T; [5; 11; 12]])
      [5; 11] [11] /\
    attains 4 (fun T => meaning (Join (First 1) Rows (First 2) Rows) (key, key, fun x y => 100 * x + y) [T; [5; 11; 12]])
      [11; 12] [12] /\
    attains 0 (fun T => meaning (GroupJoin Rows Rows) (key, key, sizes) [T; [5; 11]]) [5; 11] [11] /\
    attains 0 (fun T => meaning (SemiJoin true) (key, key) [T; [5; 11]]) [5; 11] [11] /\
    attains 1 (fun T => meaning (SemiJoin false) (key, key) [T; [5; 11]]) [5; 11] [11].
  Proof. repeat split; reflexivity. Qed.
End Tight.
