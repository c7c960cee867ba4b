(** * The registry of transformations

    [model/transformations.py] in Coq: the transformations under their Python names, the
    stability each declares, and the proof that every declaration is sound.  A
    constant [None] stands for infinity: no number of changed records bounds
    the change of the output, and the argument must be public. *)

Require Import List Arith Lia Permutation.
Require Import Fpinq.Bags Fpinq.Stability Fpinq.Join.
Import ListNotations.

(** How a join cuts one of its sides, per key. *)
Inductive mode := First (k : nat) | Unique | All.

(** Whether duplicates count. *)
Inductive kind := OfBags | OfSets.

Inductive shape :=
  | Literal
  | Identity
  | Select
  | Where
  | Distinct
  | SelectMany (k : nat)
  | Take (k : nat)
  | GroupBy
  | LimitPerKey (k : nat)
  | UniqueBy
  | Concat
  | Union (d : kind)
  | Intersect (d : kind)
  | Except (d : kind)
  | SemiJoin (keep : bool)
  | GroupJoin
  | Join (left right : mode)
  | Flatten (k : nat).

(** ** Declared stabilities *)

Definition mode_stability (m : mode) : nat := match m with First _ => 2 | Unique | All => 1 end.
Definition mode_rows (m : mode) : option nat := match m with First k => Some k | Unique => Some 1 | All => None end.

Definition join_constant (cut other : mode) : option nat :=
  option_map (Nat.mul (mode_stability cut)) (mode_rows other).

Definition stability (s : shape) : list (option nat) :=
  match s with
  | Literal => []
  | Identity | Select | Where | Distinct => [Some 1]
  | SelectMany k => [Some k]
  | Take _ => [Some 2]
  | GroupBy => [Some 2]
  | LimitPerKey _ => [Some 2]
  | UniqueBy => [Some 1]
  | Concat | Union _ | Intersect _ | Except _ => [Some 1; Some 1]
  | SemiJoin _ => [Some 1; None]
  | GroupJoin => [Some 2; Some 2]
  | Join l r => [join_constant l r; join_constant r l]
  | Flatten k => [Some k]
  end.

(** ** Meaning *)

Section Meaning.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** What the program supplies besides the numbers in the shape.  Keys are
      records too. *)
  Definition arguments (s : shape) : Type :=
    match s with
    | Literal => table
    | Identity | Distinct | Take _ | Concat | Union _ | Intersect _ | Except _ => unit
    | Select => record -> record
    | Where => record -> bool
    | SelectMany _ | Flatten _ => record -> list record
    | GroupBy => (record -> record) * (record -> list record -> record)
    | LimitPerKey _ | UniqueBy => record -> record
    | SemiJoin _ => (record -> record) * (record -> record)
    | GroupJoin => (record -> record) * (record -> record) * (record -> list record -> list record -> option record)
    | Join _ _ => (record -> record) * (record -> record) * (record -> record -> record)
    end.

  Definition cut (m : mode) : table -> table :=
    match m with First k => take k | Unique => unique | All => fun M => M end.

  Definition unary (F : table -> table) (Ts : list table) : table := match Ts with [T] => F T | _ => [] end.
  Definition binary (F : table -> table -> table) (Ts : list table) : table :=
    match Ts with [T; U] => F T U | _ => [] end.

  Definition meaning (s : shape) : arguments s -> list table -> table :=
    match s with
    | Literal => fun T _ => literal T
    | Identity => fun _ => unary (fun T => T)
    | Select => fun f => unary (select f)
    | Where => fun p => unary (where_ p)
    | Distinct => fun _ => unary distinct
    | SelectMany k => fun f => unary (select_many k f)
    | Take k => fun _ => unary (take k)
    | GroupBy => fun '(key, encode) => unary (group_by key encode)
    | LimitPerKey k => fun key => unary (limit_per_key k key)
    | UniqueBy => fun key => unary (unique_by key)
    | Concat => fun _ => binary concat
    | Union OfBags => fun _ => binary union_bag
    | Union OfSets => fun _ => binary union_set
    | Intersect OfBags => fun _ => binary intersect_bag
    | Intersect OfSets => fun _ => binary intersect_set
    | Except OfBags => fun _ => binary except_bag
    | Except OfSets => fun _ => binary except_set
    | SemiJoin keep => fun '(keyA, keyB) => binary (semi_join keep keyA keyB)
    | GroupJoin => fun '(keyA, keyB, encode) => binary (group_join keyA keyB encode)
    | Join l r => fun '(keyA, keyB, merge) => binary (join keyA keyB merge (cut l) (cut r))
    | Flatten k => fun rows => unary (flatten k rows)
    end.

  (** ** Soundness *)

  (** F keeps what the constant promises: c times the distance, or, for an
      infinite constant, at least that equal bags give equal bags. *)
  Definition keeps (c : option nat) (F : table -> table) : Prop :=
    match c with Some c => stable c F | None => forall T U, distance T U = 0 -> distance (F T) (F U) = 0 end.

  Lemma cut_stable m : stable (mode_stability m) (cut m).
  Proof. destruct m; simpl; auto using take_stable, unique_stable, identity_stable. Qed.

  Lemma cut_nil m : cut m [] = [].
  Proof. destruct m; simpl; auto using take_nil. Qed.

  Lemma cut_rows m n : mode_rows m = Some n -> forall M, length (cut m M) <= n.
  Proof. destruct m; simpl; intros E; inversion E; subst; auto using take_length, unique_length. Qed.

  (** For "all", the longest group at hand bounds this pair of tables. *)
  Lemma join_keeps_left keyA keyB pair l r U :
    keeps (join_constant l r) (fun T => join keyA keyB pair (cut l) (cut r) T U).
  Proof.
    unfold join_constant. destruct (mode_rows r) as [n|] eqn:E; simpl.
    - apply join_left; auto using cut_stable, cut_nil, cut_rows.
    - intros T T' H. apply distance_zero. apply distance_zero in H.
      apply stable_bag with (c := mode_stability l * length U)
        (F := fun T => join keyA keyB pair (cut l) (fun N => firstn (length U) (cut r N)) T U) in H.
      + assert (K : forall T, join keyA keyB pair (cut l) (fun N => firstn (length U) (cut r N)) T U
                              = join keyA keyB pair (cut l) (cut r) T U).
        { intros V. unfold join, per_key. apply flat_map_ext. intros k. f_equal. apply firstn_all2.
          destruct r; try discriminate. simpl. unfold members. clear. induction U as [|x U IH]; simpl; auto.
          destruct (is k (keyB x)); simpl; lia. }
        rewrite !K in H. exact H.
      + apply join_left; auto using cut_stable, cut_nil. intros N. rewrite firstn_length. lia.
  Qed.

  Lemma join_keeps_right keyA keyB pair l r T :
    keeps (join_constant r l) (join keyA keyB pair (cut l) (cut r) T).
  Proof.
    unfold join_constant. destruct (mode_rows l) as [n|] eqn:E; simpl.
    - apply join_right; auto using cut_stable, cut_nil, cut_rows.
    - intros U U' H. apply distance_zero. apply distance_zero in H.
      apply stable_bag with (c := mode_stability r * length T)
        (F := join keyA keyB pair (fun M => firstn (length T) (cut l M)) (cut r) T) in H.
      + assert (K : forall U, join keyA keyB pair (fun M => firstn (length T) (cut l M)) (cut r) T U
                              = join keyA keyB pair (cut l) (cut r) T U).
        { intros V. unfold join, per_key. apply flat_map_ext. intros k. f_equal. apply firstn_all2.
          destruct l; try discriminate. simpl. unfold members. clear. induction T as [|x T IH]; simpl; auto.
          destruct (is k (keyA x)); simpl; lia. }
        rewrite !K in H. exact H.
      + apply join_right; auto using cut_stable.
        * rewrite cut_nil. apply firstn_nil.
        * intros M. rewrite firstn_length. lia.
  Qed.

  Lemma semi_join_keeps_right keep keyA keyB T : keeps None (semi_join (A := record) (B := record) keep keyA keyB T).
  Proof.
    intros U U' H. apply distance_zero in H. rewrite (semi_join_bag keep keyA keyB T U U' H). apply distance_refl.
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
    - destruct f as [key encode]. exact (one _ _ H (group_by_stable key encode)).
    - exact (one _ _ H (limit_per_key_stable k f)).
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
      exact (two _ _ _ H (semi_join_left keep keyA keyB) (semi_join_keeps_right keep keyA keyB)).
    - destruct f as [[keyA keyB] encode]. pose proof (group_join_stable keyA keyB encode) as G.
      exact (two _ _ _ H (proj1 G) (proj2 G)).
    - destruct f as [[keyA keyB] merge].
      exact (two _ _ _ H (join_keeps_left keyA keyB merge left right) (join_keeps_right keyA keyB merge left right)).
    - exact (one _ _ H (flatten_stable k f)).
  Qed.
End Meaning.
