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

Section Join.
  Context {A B C K : Type} {OA : Ordered A} {OB : Ordered B} {OC : Ordered C} {OK : Ordered K}.
  Variables (keyA : A -> K) (keyB : B -> K) (pair : A -> B -> C).

  (** All pairs of a row of M and a row of N. *)
  Definition pairs (M : list A) (N : list B) : list C := flat_map (fun x => map (pair x) N) M.

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

  Definition join (cutA : list A -> list A) (cutB : list B -> list B) (T : list A) (U : list B) : list C :=
    per_key keyA keyB (fun _ M N => pairs (cutA M) (cutB N)) T U.

  Section Law.
    Variables (cutA : list A -> list A) (cutB : list B -> list B) (a b : nat).
    Hypothesis cutA_stable : stable a cutA.
    Hypothesis cutB_stable : stable b cutB.
    Hypothesis cutA_nil : cutA [] = [].

    Lemma join_left R : (forall N, length (cutB N) <= R) -> forall U, stable (a * R) (fun T => join cutA cutB T U).
    Proof.
      intros HR. apply per_key_left; [rewrite cutA_nil; reflexivity|]. intros _ N.
      apply (stable_weaken (length (cutB N) * a)); [specialize (HR N); nia|].
      apply (stable_compose a (length (cutB N)) cutA (fun M => pairs M (cutB N))); auto using pairs_left.
    Qed.

    Lemma join_right L : (forall M, length (cutA M) <= L) -> forall T, stable (b * L) (join cutA cutB T).
    Proof.
      intros HL. apply per_key_right; [rewrite cutA_nil; reflexivity|]. intros _ M.
      apply (stable_weaken (length (cutA M) * b)); [specialize (HL M); nia|].
      apply (stable_compose b (length (cutA M)) cutB (pairs (cutA M))); auto using pairs_right.
    Qed.

    Theorem join_law L R : (forall M, length (cutA M) <= L) -> (forall N, length (cutB N) <= R) ->
      stable2 (a * R) (b * L) (join cutA cutB).
    Proof. split; auto using join_left, join_right. Qed.
  End Law.

  Lemma take_nil {D} {OD : Ordered D} k : take k (@nil D) = [].
  Proof. unfold take. apply firstn_nil. Qed.

  Lemma all_stable {D} {OD : Ordered D} : stable 1 (fun M : list D => M).
  Proof. apply identity_stable. Qed.

  Local Hint Resolve take_stable take_length take_nil unique_stable unique_length all_stable : core.

  (** The pairs of modes.  "All" has no bound, so the other argument of the join
      has none either and must be public. *)

  Corollary join_first_first L R : stable2 (2 * R) (2 * L) (join (take L) (take R)).
  Proof. apply join_law; auto. Qed.

  Corollary join_unique_first R : stable2 R 2 (join unique (take R)).
  Proof.
    replace R with (1 * R) at 1 by lia. replace 2 with (2 * 1) by lia. apply join_law; auto.
  Qed.

  Corollary join_first_unique L : stable2 2 L (join (take L) unique).
  Proof.
    replace 2 with (2 * 1) by lia. replace L with (1 * L) at 1 by lia. apply join_law; auto.
  Qed.

  Corollary join_unique_unique : stable2 1 1 (join unique unique).
  Proof. change 1 with (1 * 1). apply (join_law unique unique 1 1); auto. Qed.

  Corollary join_all_first R U : stable R (fun T => join (fun M => M) (take R) T U).
  Proof. replace R with (1 * R) by lia. apply join_left; auto. intros. rewrite Nat.mul_1_l. auto. Qed.

  Corollary join_all_unique U : stable 1 (fun T => join (fun M => M) unique T U).
  Proof. replace 1 with (1 * 1) by lia. apply join_left; auto. Qed.

  Corollary join_first_all L T : stable L (join (take L) (fun N => N) T).
  Proof. replace L with (1 * L) by lia. apply join_right; auto. intros. rewrite Nat.mul_1_l. auto. Qed.

  Corollary join_unique_all T : stable 1 (join unique (fun N => N) T).
  Proof. replace 1 with (1 * 1) by lia. apply join_right; auto. Qed.
End Join.

(** ** Tight

    The factor 2 of a "first k" side is real: one new row pushes another one
    out, and each of them meets R rows.  In particular (R, L), the reading that
    suggests itself, is unsound. *)

Section TightForAll.
  (** For all L and R: every row has the same key, the left side holds L rows 1,
      and a new row 0 comes before them. *)
  Let key (x : nat) : nat := 0.

  Lemma join_one_key (pair : nat -> nat -> nat) cutA cutB (T U : list nat) : cutA [] = [] ->
    Permutation (join key key pair cutA cutB T U) (pairs pair (cutA T) (cutB U)).
  Proof.
    intros H. unfold join. rewrite (per_key_over key key (fun _ M N => pairs pair (cutA M) (cutB N))) with (X := [0]).
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
    attains (2 * R) (fun T => join key key left_pair (take (S L)) (take R) T (seq 0 R)) (0 :: repeat 1 (S L))
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
    attains (2 * L) (join key key right_pair (take L) (take (S R)) (seq 0 L)) (0 :: repeat 1 (S R)) (repeat 1 (S R)).
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
    attains (2 * 3) (fun T => join key key pair (take 2) (take 3) T [10; 11; 12; 13]) [10; 11; 12] [11; 12] /\
    attains (2 * 2) (join key key pair (take 2) (take 3) [10; 11; 12]) [10; 11; 12; 13] [11; 12; 13].
  Proof. repeat split; reflexivity. Qed.

  Example join_unique_first_tight :
    attains 3 (fun T => join key key pair unique (take 3) T [10; 11; 12; 13]) [10] [] /\
    attains 2 (join key key pair unique (take 3) [10]) [10; 11; 12; 13] [11; 12; 13].
  Proof. repeat split; reflexivity. Qed.

  Example join_first_unique_tight :
    attains 2 (fun T => join key key pair (take 3) unique T [10]) [10; 11; 12; 13] [11; 12; 13] /\
    attains 3 (join key key pair (take 3) unique [10; 11; 12; 13]) [10] [].
  Proof. repeat split; reflexivity. Qed.

  Example join_unique_unique_tight :
    attains 1 (fun T => join key key pair unique unique T [10]) [10] [] /\
    attains 1 (join key key pair unique unique [10]) [10] [].
  Proof. repeat split; reflexivity. Qed.

  Example join_all_first_tight :
    attains 3 (fun T => join key key pair (fun M => M) (take 3) T [10; 11; 12; 13]) [10] [].
  Proof. split; reflexivity. Qed.
End Tight.
