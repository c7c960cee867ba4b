(** * Where less is seen, less changes

    Grouping, limiting and joining have the factor 2 because one record more
    can make another one go: a group's record is replaced, or a row takes
    another one's place.  Where nothing is seen of the members but their key,
    there is no second change and the constant is 1:

    - grouping, if the record is made of the key alone;
    - limiting per key, if the key tells the whole record: what is kept are
      copies;
    - a group join, on a side of which it sees only whether there are members.

    (A join's side is in [Join].)  Each constant is attained. *)

Require Import List Arith Lia Permutation.
Require Import Fpinq.Bags Fpinq.Stability Fpinq.Join.
Import ListNotations.

(** At most one record, the same whenever there is any. *)
Lemma present_stable {A B} {OA : Ordered A} {OB : Ordered B} (c : list B) : length c <= 1 ->
  stable 1 (fun M : list A => match M with [] => [] | _ => c end).
Proof.
  intros L T U. destruct T as [|x T], U as [|y U]; rewrite ?distance_refl; try lia.
  - rewrite distance_nil_l, distance_nil_l. simpl. lia.
  - rewrite distance_nil_r, distance_nil_r. simpl. lia.
Qed.

Section Keys.
  Context {K : Type} {OK : Ordered K}.

  (** ** Group by, without aggregates *)

  Definition group_keys {A C} (key : A -> K) (encode : K -> C) (T : list A) : list C :=
    each_key key (fun k M => match M with [] => [] | _ => [encode k] end) T.

  Lemma group_keys_stable {A C} {OA : Ordered A} {OC : Ordered C} (key : A -> K) (encode : K -> C) :
    stable 1 (group_keys key encode).
  Proof. apply each_key_stable; [reflexivity|]. intros k. apply present_stable. simpl. lia. Qed.

  (** It is [group_by] with a function that looks at the key only. *)
  Lemma group_keys_group_by {A C} {OA : Ordered A} (key : A -> K) (encode : K -> C) T :
    group_keys key encode T = group_by key (fun k _ => encode k) T.
  Proof. reflexivity. Qed.

  (** ** Limit per key, by the whole record *)

  Section Copies.
    Context {A : Type} {OA : Ordered A} (key : A -> K).
    Hypothesis tells : forall x y, key x = key y -> x = y.

    Lemma copies_members T x : members key (key x) T = repeat x (count T x).
    Proof.
      unfold members. induction T as [|y T IH]; [reflexivity|]. simpl. rewrite count_cons.
      destruct (is (key x) (key y)) eqn:E.
      - apply is_true, tells in E. subst. destruct (eq_dec x x); [|congruence]. simpl. rewrite IH. reflexivity.
      - destruct (eq_dec y x) as [->|]; [|exact IH]. exfalso. rewrite (proj2 (is_true (key x) (key x)) eq_refl) in E.
        discriminate.
    Qed.

    Lemma take_repeat n x m : take n (repeat x m) = repeat x (Nat.min n m).
    Proof.
      unfold take. assert (E : sort (repeat x m) = repeat x m).
      { induction m as [|m IH]; [reflexivity|]. change (sort (repeat x (S m))) with (insert x (sort (repeat x m))).
        rewrite IH. destruct m; [reflexivity|]. simpl. destruct (leb x x) eqn:L; [reflexivity|]. destruct (leb_total x x); congruence. }
      rewrite E. clear E. revert m. induction n as [|n IH]; intros [|m]; simpl; auto. rewrite IH. reflexivity.
    Qed.

    Lemma count_distance T U x : apart (count T x) (count U x) <= distance T U.
    Proof.
      rewrite (distance_total T U (support [T; U; [x]])); try apply support_nodup; try (apply support_incl; simpl; tauto).
      assert (H : In x (support [T; U; [x]])) by (apply (support_incl [T; U; [x]] [x]); simpl; tauto).
      induction (support [T; U; [x]]) as [|y X IH]; simpl; [contradiction|]. destruct H as [->|H]; [lia|].
      specialize (IH H). lia.
    Qed.

    (** The records of one key are copies of one record, in any table. *)
    Lemma copies_stable n k : stable 1 (fun M => take n (members key k M)).
    Proof.
      assert (some : forall M x, In x (members key k M) -> key x = k).
      { intros M x H. apply filter_In in H. apply is_true, H. }
      assert (one : forall x T U, key x = k ->
        distance (take n (members key k T)) (take n (members key k U)) <= 1 * distance T U).
      { intros x T U <-. rewrite !copies_members, !take_repeat. eapply Nat.le_trans; [apply repeat_apart|].
        pose proof (count_distance T U x). unfold apart in *. lia. }
      intros T U. destruct (members key k T) as [|x M] eqn:ET.
      - destruct (members key k U) as [|y N] eqn:EU; [rewrite distance_refl; lia|].
        rewrite <- ET, <- EU. apply (one y). apply (some U). rewrite EU. left. reflexivity.
      - rewrite <- ET. apply (one x). apply (some T). rewrite ET. left. reflexivity.
    Qed.

    Theorem limit_copies_stable n : stable 1 (limit_per_key n key).
    Proof.
      assert (E : forall T, limit_per_key n key T = each_key key (fun k M => take n (members key k M)) T).
      { intros T. unfold limit_per_key, each_key, per_key. apply flat_map_ext. intros k. f_equal. unfold members.
        induction T as [|x T IH]; simpl; auto. destruct (is k (key x)) eqn:Ex; simpl; rewrite ?Ex; congruence. }
      intros T U. rewrite !E. apply (each_key_stable key (fun k M => take n (members key k M)) 1).
      - intros k. unfold take. simpl. apply firstn_nil.
      - apply copies_stable.
    Qed.
  End Copies.

  (** ** A group join that sees the keys of one side only *)

  Section GroupJoin.
    Context {A B C : Type} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C}.
    Variables (keyA : A -> K) (keyB : B -> K) (encode : K -> list A -> list B -> option C).

    Lemma group_join_blind_left : (forall k M M' N, encode k M N = encode k M' N) ->
      forall U, stable 1 (fun T => group_join keyA keyB encode T U).
    Proof.
      intros H. apply per_key_left; [reflexivity|]. intros k N.
      destruct N as [|y N].
      - intros T U. rewrite (H k (sort T) [] (sort [])), (H k (sort U) [] (sort [])).
        apply (present_stable (match encode k [] (sort []) with Some c => [c] | None => [] end)).
        destruct (encode k [] (sort [])); simpl; lia.
      - intros T U. rewrite (H k (sort T) [] (sort (y :: N))), (H k (sort U) [] (sort (y :: N))).
        destruct T, U; rewrite distance_refl; lia.
    Qed.

    Lemma group_join_blind_right : (forall k M N N', encode k M N = encode k M N') ->
      forall T, stable 1 (group_join keyA keyB encode T).
    Proof.
      intros H. apply per_key_right; [reflexivity|]. intros k M.
      destruct M as [|x M].
      - intros T U. rewrite (H k (sort []) (sort T) []), (H k (sort []) (sort U) []).
        apply (present_stable (match encode k (sort []) [] with Some c => [c] | None => [] end)).
        destruct (encode k (sort []) []); simpl; lia.
      - intros T U. rewrite (H k (sort (x :: M)) (sort T) []), (H k (sort (x :: M)) (sort U) []).
        rewrite distance_refl. lia.
    Qed.
  End GroupJoin.
End Keys.

(** ** Attained *)

Section Tight.
  Let key (x : nat) : nat := x / 10.

  Example group_keys_tight : attains 1 (group_keys key (fun k => k)) [11] [].
  Proof. split; reflexivity. Qed.

  Example limit_copies_tight : attains 1 (limit_per_key 2 (fun x : nat => x)) [11; 11] [11].
  Proof. split; reflexivity. Qed.

  (** With two records of one key it is not copies that are kept. *)
  Example limit_needs_the_record : attains 2 (limit_per_key 2 key) [11; 12; 13] [12; 13].
  Proof. split; reflexivity. Qed.

  Let lefts (k : nat) (M N : list nat) : option nat := Some (10 * k + length M).

  Example group_join_blind_tight :
    attains 2 (fun T => group_join key key lefts T [13]) [11; 12] [11] /\ attains 1 (group_join key key lefts []) [11] [].
  Proof. repeat split; reflexivity. Qed.
End Tight.
