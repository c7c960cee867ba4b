(** * The join

    A join multiplies: one row on the left meets every row on the right that
    has its key.  It is stable only if both sides are cut per key first.

    The join law: if the left cut has stability a and leaves at most L rows per
    key, and the right one b and R, then the join of what they leave has
    stability a*R in its left and b*L in its right argument.  The modes offered
    are three cuts: the first k rows of a key in the canonical order, the row of
    a key that has one only, or all rows, which leaves no bound. *)

Require Import List Arith Lia Permutation Morphisms.
Require Import Fpinq.Bags Fpinq.Stability.
Import ListNotations.

(** ** What a join sees of a side

    A side is cut per key, and then shows its rows; or it shows no more than its
    key, as often as it has rows left. *)

Definition rows {A K} (cut : list A -> list A) (_ : K) (M : list A) : list A := cut M.
Definition keys {A K} (cut : list A -> list A) (k : K) (M : list A) : list K := map (fun _ => k) (cut M).

(** A record of a join that is made of the key of x only sees the same thing:
    all rows of a group have its key. *)
Lemma keys_of_rows {A K} {OK : Ordered K} (key : A -> K) cut k (T : list A) : (forall M, incl (cut M) M) ->
  keys cut k (members key k T) = map key (rows cut k (members key k T)).
Proof.
  intros H. unfold keys, rows. apply map_ext_in. intros x Hx. apply H in Hx. apply filter_In in Hx.
  symmetry. apply is_true, Hx.
Qed.

Section Join.
  Context {A B C D E K : Type} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C} {OD : Ordered D} {OE : Ordered E}
    {OK : Ordered K}.
  Variables (keyA : A -> K) (keyB : B -> K) (pair : D -> E -> C).

  (** All pairs of a row of M and a row of N. *)
  Definition pairs (M : list D) (N : list E) : list C := flat_map (fun x => map (pair x) N) M.

  Lemma pairs_nil_r M : pairs M [] = [].
  Proof. induction M; auto. Qed.

  Lemma pairs_left N : stable (length N) (fun M => pairs M N).
  Proof.
    apply stable_add.
    - intros T U H. apply Permutation_flat_map, H.
    - intros x T. simpl.
      eapply Nat.le_trans; [apply (distance_app (map (pair x) N) [] (pairs T N) (pairs T N))|].
      rewrite distance_refl, distance_nil_r, map_length. lia.
  Qed.

  Lemma pairs_right M : stable (length M) (pairs M).
  Proof.
    induction M as [|x M IH]; intros T U; simpl; [rewrite distance_refl; lia|].
    eapply Nat.le_trans; [apply distance_app|].
    specialize (IH T U). pose proof (select_stable (pair x) T U) as H. unfold select in H. lia.
  Qed.

  Definition join (left : K -> list A -> list D) (right : K -> list B -> list E) (T : list A) (U : list B) : list C :=
    per_key keyA keyB (fun k M N => pairs (left k M) (right k N)) T U.

  Section Law.
    Variables (left : K -> list A -> list D) (right : K -> list B -> list E) (a b : nat).
    Hypothesis left_stable : forall k, stable a (left k).
    Hypothesis right_stable : forall k, stable b (right k).
    Hypothesis left_nil : forall k, left k [] = [].

    Lemma join_left R : (forall k N, length (right k N) <= R) -> forall U, stable (a * R) (fun T => join left right T U).
    Proof.
      intros HR. apply per_key_left; [intros k; rewrite left_nil; reflexivity|]. intros k N.
      apply (stable_weaken (length (right k N) * a)); [specialize (HR k N); nia|].
      apply (stable_compose a (length (right k N)) (left k) (fun M => pairs M (right k N))); auto using pairs_left.
    Qed.

    Lemma join_right L : (forall k M, length (left k M) <= L) -> forall T, stable (b * L) (join left right T).
    Proof.
      intros HL. apply per_key_right; [intros k; rewrite left_nil; reflexivity|]. intros k M.
      apply (stable_weaken (length (left k M) * b)); [specialize (HL k M); nia|].
      apply (stable_compose b (length (left k M)) (right k) (pairs (left k M))); auto using pairs_right.
    Qed.

    Theorem join_law L R : (forall k M, length (left k M) <= L) -> (forall k N, length (right k N) <= R) ->
      stable2 (a * R) (b * L) (join left right).
    Proof. split; auto using join_left, join_right. Qed.
  End Law.
End Join.

(** A join sees bags: with sides that are not bounded too, for the rows at hand
    bound them. *)

Section Unbounded.
  Context {A B C D E K : Type} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C} {OD : Ordered D} {OE : Ordered E}
    {OK : Ordered K}.
  Variables (keyA : A -> K) (keyB : B -> K) (pair : D -> E -> C).
  Variables (left : K -> list A -> list D) (right : K -> list B -> list E) (a b : nat).
  Hypothesis left_stable : forall k, stable a (left k).
  Hypothesis right_stable : forall k, stable b (right k).
  Hypothesis left_nil : forall k, left k [] = [].

  Lemma members_rows {X} (key : X -> K) k T : length (members key k T) <= length T.
  Proof. unfold members. induction T as [|x T IH]; simpl; auto. destruct (is k (key x)); simpl; lia. Qed.

  Lemma join_bag_left U : (forall k N, length (right k N) <= S (length N)) -> forall T T', distance T T' = 0 ->
    distance (join keyA keyB pair left right T U) (join keyA keyB pair left right T' U) = 0.
  Proof.
    intros H T T' Z. pose (short := fun k N => firstn (S (length U)) (right k N)).
    assert (E' : forall T, join keyA keyB pair left right T U = join keyA keyB pair left short T U).
    { intros V. unfold join, per_key. apply flat_map_ext. intros k. f_equal. symmetry. apply firstn_all2.
      pose proof (H k (members keyB k U)). pose proof (members_rows keyB k U). lia. }
    rewrite !E'. pose proof (join_left keyA keyB pair left short a left_stable left_nil (S (length U))) as J.
    assert (B' : forall k N, length (short k N) <= S (length U)) by (intros; unfold short; rewrite firstn_length; lia).
    specialize (J B' U T T'). cbv beta in J. lia.
  Qed.

  Lemma join_bag_right T : (forall k M, length (left k M) <= length M) -> forall U U', distance U U' = 0 ->
    distance (join keyA keyB pair left right T U) (join keyA keyB pair left right T U') = 0.
  Proof.
    intros H U U' Z. pose (short := fun k M => firstn (length T) (left k M)).
    assert (E' : forall U, join keyA keyB pair left right T U = join keyA keyB pair short right T U).
    { intros V. unfold join, per_key. apply flat_map_ext. intros k. f_equal. symmetry. apply firstn_all2.
      pose proof (H k (members keyA k T)). pose proof (members_rows keyA k T). lia. }
    rewrite !E'. pose proof (join_right keyA keyB pair short right b right_stable) as J.
    assert (N' : forall k, short k [] = []) by (intros; unfold short; rewrite left_nil; apply firstn_nil).
    assert (B' : forall k M, length (short k M) <= length T) by (intros; unfold short; rewrite firstn_length; lia).
    specialize (J N' (length T) B' T U U'). lia.
  Qed.
End Unbounded.

(** ** Outer

    A left row that meets nothing is kept, beside nothing.  On the right, the
    first row of a key takes nothing's place: two changes for each left row. *)

Definition or_nothing {E} (nothing : E) (N : list E) : list E := match N with [] => [nothing] | _ => N end.

Lemma or_nothing_rows {E} (nothing : E) N : length (or_nothing nothing N) <= Nat.max 1 (length N).
Proof. destruct N; simpl; lia. Qed.

(** A side whose rows change by at most one where one row is added. *)
Lemma or_nothing_stable {B E} {OB : Ordered B} {OE : Ordered E} a nothing (side : list B -> list E) :
  a <= 2 -> stable a side ->
  (forall x N, length (side (x :: N)) <= S (length (side N)) /\ length (side N) <= S (length (side (x :: N)))) ->
  stable 2 (fun N => or_nothing nothing (side N)).
Proof.
  intros Ha Hs Hl. apply stable_add.
  - intros T U H. apply (stable_bag a side T U Hs) in H. unfold or_nothing. pose proof (Permutation_length H).
    destruct (side T), (side U); simpl in *; try lia; auto.
  - intros x T. pose proof (Hs (x :: T) T) as D. rewrite distance_add in D. destruct (Hl x T) as [L1 L2].
    unfold or_nothing. destruct (side (x :: T)) as [|p P], (side T) as [|q Q]; simpl in *; try lia.
    + rewrite distance_refl. lia.
    + pose proof (distance_lengths [nothing] (q :: Q)). simpl in *. lia.
    + pose proof (distance_lengths (p :: P) [nothing]). simpl in *. lia.
Qed.

(** ** The cuts *)

Lemma take_nil {D} {OD : Ordered D} k : take k (@nil D) = [].
Proof. unfold take. apply firstn_nil. Qed.

Lemma take_counts {D} {OD : Ordered D} n (M : list D) : length (take n M) = Nat.min n (length M).
Proof. unfold take. rewrite firstn_length, (Permutation_length (sort_permutation M)). reflexivity. Qed.

Lemma repeat_apart {D} {OD : Ordered D} (x : D) m n : distance (repeat x m) (repeat x n) <= apart m n.
Proof.
  revert n. induction m as [|m IH]; intros n.
  - simpl. rewrite distance_nil_l, repeat_length. unfold apart. lia.
  - destruct n as [|n]; [change (repeat x 0) with (@nil D); rewrite distance_nil_r, repeat_length; unfold apart; lia|].
    simpl. eapply Nat.le_trans; [apply distance_cons|]. specialize (IH n). unfold apart in *. lia.
Qed.

(** Of the first rows of a key nothing is seen but how many they are: no row
    takes another one's place. *)
Lemma keys_take_stable {D K} {OD : Ordered D} {OK : Ordered K} n (k : K) : stable 1 (keys (take (A := D) n) k).
Proof.
  intros T U. unfold keys.
  assert (E : forall M : list D, map (fun _ => k) M = repeat k (length M)) by (induction M; simpl; congruence).
  rewrite !E, !take_counts. eapply Nat.le_trans; [apply repeat_apart|].
  pose proof (length_distance T U). unfold apart in *. lia.
Qed.

Lemma keys_stable {D K} {OD : Ordered D} {OK : Ordered K} a (cut : list D -> list D) (k : K) :
  stable a cut -> stable a (keys cut k).
Proof.
  intros H. replace a with (1 * a) by lia.
  exact (stable_compose a 1 cut (select (fun _ => k)) H (select_stable (fun _ => k))).
Qed.

(** ** The pairs of modes

    "All" has no bound, so the other argument of the join has none either and
    must be public. *)

Section Modes.
  Context {A B C K : Type} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C} {OK : Ordered K}.
  Variables (keyA : A -> K) (keyB : B -> K) (pair : A -> B -> C).
  Notation join cutA cutB := (join keyA keyB pair (rows cutA) (rows cutB)).

  Lemma all_stable {D} {OD : Ordered D} : stable 1 (fun M : list D => M).
  Proof. apply identity_stable. Qed.

  Local Ltac by_law := unfold rows; intros; rewrite ?Nat.mul_1_l;
    first [apply take_stable | apply unique_stable | apply all_stable | apply take_length | apply unique_length |
           apply take_nil | reflexivity].

  Corollary join_first_first L R : stable2 (2 * R) (2 * L) (join (take L) (take R)).
  Proof. apply join_law; by_law. Qed.

  Corollary join_unique_first R : stable2 R 2 (join unique (take R)).
  Proof. replace R with (1 * R) at 1 by lia. replace 2 with (2 * 1) by lia. apply join_law; by_law. Qed.

  Corollary join_first_unique L : stable2 2 L (join (take L) unique).
  Proof. replace 2 with (2 * 1) by lia. replace L with (1 * L) at 1 by lia. apply join_law; by_law. Qed.

  Corollary join_unique_unique : stable2 1 1 (join unique unique).
  Proof. change 1 with (1 * 1). apply join_law with (a := 1) (b := 1); by_law. Qed.

  Corollary join_all_first R U : stable R (fun T => join (fun M => M) (take R) T U).
  Proof. replace R with (1 * R) by lia. apply join_left; by_law. Qed.

  Corollary join_all_unique U : stable 1 (fun T => join (fun M => M) unique T U).
  Proof. replace 1 with (1 * 1) by lia. apply join_left; by_law. Qed.

  Corollary join_first_all L T : stable L (join (take L) (fun N => N) T).
  Proof. replace L with (1 * L) by lia. apply join_right; by_law. Qed.

  Corollary join_unique_all T : stable 1 (join unique (fun N => N) T).
  Proof. replace 1 with (1 * 1) by lia. apply join_right; by_law. Qed.
End Modes.

(** ** Tight

    The factor 2 of a "first k" side is real: one new row pushes another one
    out, and each of them meets R rows.  In particular (R, L), the reading that
    suggests itself, is unsound. *)

Section TightForAll.
  (** For all L and R: every row has the same key, the left side holds L rows 1,
      and a new row 0 comes before them. *)
  Let key (x : nat) : nat := 0.

  Lemma join_one_key (pair : nat -> nat -> nat) cutA cutB (T U : list nat) : cutA [] = [] ->
    Permutation (join key key pair (rows cutA) (rows cutB) T U) (pairs pair (cutA T) (cutB U)).
  Proof.
    intros H. unfold join, rows. rewrite (per_key_over key key (fun _ M N => pairs pair (cutA M) (cutB N))) with (X := [0]).
    - simpl. rewrite app_nil_r. unfold members.
      assert (E : forall V : list nat, filter (fun x => is 0 (key x)) V = V) by (induction V as [|x V IH]; simpl;
        congruence).
      rewrite !E. reflexivity.
    - intros _. rewrite H. reflexivity.
    - repeat constructor. simpl. tauto.
    - intros x Hx. apply in_map_iff in Hx. destruct Hx as (y & <- & _). simpl. auto.
    - intros x Hx. apply in_map_iff in Hx. destruct Hx as (y & <- & _). simpl. auto.
  Qed.

  Lemma take_ones k : take k (repeat 1 k) = repeat 1 k.
  Proof.
    unfold take. assert (E : sort (repeat 1 k) = repeat 1 k).
    { induction k as [|k IH]; [reflexivity|]. change (sort (repeat 1 (S k))) with (insert 1 (sort (repeat 1 k))).
      rewrite IH. destruct k; reflexivity. }
    rewrite E. apply firstn_all2. rewrite repeat_length. lia.
  Qed.

  Lemma take_zero_ones k : take (S k) (0 :: repeat 1 (S k)) = 0 :: repeat 1 k.
  Proof.
    unfold take. assert (E : sort (repeat 1 (S k)) = repeat 1 (S k)).
    { pose proof (take_ones (S k)) as H. unfold take in H. rewrite firstn_all2 in H; [exact H|].
      rewrite (Permutation_length (sort_permutation (repeat 1 (S k)))), repeat_length. lia. }
    change (sort (0 :: repeat 1 (S k))) with (insert 0 (sort (repeat 1 (S k)))). rewrite E.
    change (insert 0 (repeat 1 (S k))) with (0 :: repeat 1 (S k)). cbn [firstn]. f_equal.
    replace (S k) with (k + 1) by lia. rewrite repeat_app, firstn_app, repeat_length, Nat.sub_diag. simpl.
    rewrite app_nil_r. apply firstn_all2. rewrite repeat_length. lia.
  Qed.

  Lemma take_all_length k : length (take k (seq 0 k)) = k.
  Proof. unfold take. rewrite firstn_length, (Permutation_length (sort_permutation (seq 0 k))), seq_length. lia. Qed.

  Lemma pairs_cons_right (pair : nat -> nat -> nat) M y N :
    Permutation (pairs pair M (y :: N)) (map (fun x => pair x y) M ++ pairs pair M N).
  Proof.
    induction M as [|x M IH]; [reflexivity|]. simpl. constructor. rewrite IH. apply Permutation_app_swap_app.
  Qed.

  Let left_pair (x y : nat) : nat := x + 2 * y.
  Let right_pair (x y : nat) : nat := 2 * x + y.

  Theorem join_left_tight L R :
    attains (2 * R) (fun T => join key key left_pair (rows (take (S L))) (rows (take R)) T (seq 0 R)) (0 :: repeat 1 (S L))
      (repeat 1 (S L)).
  Proof.
    split; [apply distance_add|].
    rewrite !join_one_key, take_zero_ones, take_ones by apply take_nil.
    change (repeat 1 (S L)) with (1 :: repeat 1 L). cbn [pairs flat_map]. rewrite distance_cancel, distance_disjoint.
    - rewrite !map_length, take_all_length. lia.
    - intros z Hz Hz'. apply in_map_iff in Hz, Hz'. destruct Hz as (y & E & _), Hz' as (y' & E' & _).
      unfold left_pair in *. lia.
  Qed.

  Theorem join_right_tight L R :
    attains (2 * L) (join key key right_pair (rows (take L)) (rows (take (S R))) (seq 0 L)) (0 :: repeat 1 (S R)) (repeat 1 (S R)).
  Proof.
    split; [apply distance_add|].
    rewrite !join_one_key, take_zero_ones, take_ones by apply take_nil.
    change (repeat 1 (S R)) with (1 :: repeat 1 R). rewrite !pairs_cons_right, distance_cancel, distance_disjoint.
    - rewrite !map_length, take_all_length. lia.
    - intros z Hz Hz'. apply in_map_iff in Hz, Hz'. destruct Hz as (y & E & _), Hz' as (y' & E' & _).
      unfold right_pair in *. lia.
  Qed.
End TightForAll.

Section Tight.
  Let key (x : nat) : nat := x / 10.
  Let pair (x y : nat) : nat := 100 * x + y.

  Example join_first_first_tight :
    attains (2 * 3) (fun T => join key key pair (rows (take 2)) (rows (take 3)) T [10; 11; 12; 13]) [10; 11; 12] [11; 12] /\
    attains (2 * 2) (join key key pair (rows (take 2)) (rows (take 3)) [10; 11; 12]) [10; 11; 12; 13] [11; 12; 13].
  Proof. repeat split; reflexivity. Qed.

  Example join_unique_first_tight :
    attains 3 (fun T => join key key pair (rows unique) (rows (take 3)) T [10; 11; 12; 13]) [10] [] /\
    attains 2 (join key key pair (rows unique) (rows (take 3)) [10]) [10; 11; 12; 13] [11; 12; 13].
  Proof. repeat split; reflexivity. Qed.

  Example join_first_unique_tight :
    attains 2 (fun T => join key key pair (rows (take 3)) (rows unique) T [10]) [10; 11; 12; 13] [11; 12; 13] /\
    attains 3 (join key key pair (rows (take 3)) (rows unique) [10; 11; 12; 13]) [10] [].
  Proof. repeat split; reflexivity. Qed.

  Example join_unique_unique_tight :
    attains 1 (fun T => join key key pair (rows unique) (rows unique) T [10]) [10] [] /\
    attains 1 (join key key pair (rows unique) (rows unique) [10]) [10] [].
  Proof. repeat split; reflexivity. Qed.

  Example join_all_first_tight :
    attains 3 (fun T => join key key pair (rows (fun M => M)) (rows (take 3)) T [10; 11; 12; 13]) [10] [].
  Proof. split; reflexivity. Qed.

  (** A side of which only keys are seen has one factor 2 less, and no smaller
      constant. *)
  Example join_keys_tight :
    attains 3 (fun T => join key key pair (keys (take 2)) (rows (take 3)) T [10; 11; 12; 13]) [10] [] /\
    attains (2 * 2) (join key key pair (keys (take 2)) (rows (take 3)) [10; 11; 12]) [10; 11; 12; 13] [11; 12; 13] /\
    attains 2 (fun T => join key key pair (keys (take 2)) (keys (take 2)) T [10; 11]) [10] [] /\
    attains 2 (join key key pair (keys (take 2)) (keys (take 2)) [10; 11]) [10] [].
  Proof. repeat split; reflexivity. Qed.
End Tight.
