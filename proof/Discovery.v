(** * Keys that nobody knew

    How many records have each key, of keys that nobody lists: [model/discovery.py].
    A record counts in one key, or, where it is a person, in several: at most
    [most], once in each.  Every count gets noise, and those that reach a
    threshold are released, each as its key and its noisy count, in the order of
    the keys.  Keys are numbers here, as they are on the wire.

    - [sparse], [sparse_at_rho]: noise on all keys of a finite domain.  A function
      of the noisy sums, so as private as they are, without a δ, whatever the
      threshold.
    - [Stable]: noise on the keys that records have.  A key that only one of two
      tables has would tell them apart; it is released with probability
      tail(count) at most.  But for that, its [stable_core], the release is close.
      [safe]: most * tail(a) ≤ a * δ for a = 1 … S, S the scale of the table; then
      a δ for each unit of distance covers every way in which counts can differ.

    Of what is released any function may be shown ([show]): the largest so many, say. *)

Require Import Reals Lra Lia List Arith ZArith Permutation Sorting.Sorted FunctionalExtensionality Bool.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Mechanisms Fpinq.Private Fpinq.Closeness Fpinq.Approximate Fpinq.Hyperbolic Fpinq.Moments Fpinq.Gaussian
  Fpinq.Postprocessing Fpinq.AtRho.
Import ListNotations.
Open Scope R_scope.

Definition option_dec (x y : option Z) : {x = y} + {x <> y}.
Proof. decide equality. apply Z.eq_dec. Defined.

(** ** Sorted keys *)

Fixpoint insert (x : Z) (l : list Z) : list Z :=
  match l with
  | [] => [x]
  | y :: k => if (x <? y)%Z then x :: l else if (x =? y)%Z then l else y :: insert x k
  end.

Lemma insert_in x l z : In z (insert x l) <-> z = x \/ In z l.
Proof.
  induction l as [|y l IH]; simpl; [intuition congruence|]. destruct (Z.ltb_spec x y); [simpl; intuition congruence|].
  destruct (Z.eqb_spec x y) as [->|]; simpl; [intuition congruence|]. rewrite IH. tauto.
Qed.

Lemma insert_sorted x l : StronglySorted Z.lt l -> StronglySorted Z.lt (insert x l).
Proof.
  induction 1 as [|y l S IH F]; simpl; [repeat constructor|]. destruct (Z.ltb_spec x y).
  - constructor; [constructor; assumption|]. constructor; [assumption|]. eapply Forall_impl; [|exact F]. intros z Hz. simpl in Hz. lia.
  - destruct (Z.eqb_spec x y) as [->|]; [constructor; assumption|]. constructor; [exact IH|]. apply Forall_forall. intros z Hz.
    apply insert_in in Hz. destruct Hz as [->|Hz]; [lia|]. rewrite Forall_forall in F. apply F, Hz.
Qed.

Lemma sorted_unique l : StronglySorted Z.lt l -> forall k, StronglySorted Z.lt k -> (forall x, In x l <-> In x k) -> l = k.
Proof.
  induction 1 as [|x l S IH F]; intros k Sk E.
  - destruct k as [|y k]; auto. exfalso. apply (proj2 (E y)). left. reflexivity.
  - destruct Sk as [|y k Sk Fk]; [exfalso; apply (proj1 (E x)); left; reflexivity|].
    rewrite Forall_forall in F, Fk.
    assert (x = y).
    { destruct (proj1 (E x) (or_introl eq_refl)) as [|Hx]; auto. destruct (proj2 (E y) (or_introl eq_refl)) as [|Hy]; auto.
      specialize (F y Hy). specialize (Fk x Hx). lia. }
    subst y. f_equal. apply IH; auto. intros z. specialize (E z). simpl in E. split; intros Hz.
    + destruct (proj1 E (or_intror Hz)) as [<-|]; auto. specialize (F x Hz). lia.
    + destruct (proj2 E (or_intror Hz)) as [<-|]; auto. specialize (Fk x Hz). lia.
Qed.

Lemma filter_sorted p l : StronglySorted Z.lt l -> StronglySorted Z.lt (filter p l).
Proof.
  induction 1 as [|x l S IH F]; simpl; [constructor|]. destruct (p x); auto. constructor; auto. apply Forall_forall. intros z Hz.
  apply filter_In in Hz. rewrite Forall_forall in F. apply F, Hz.
Qed.

Lemma sorted_nodup l : StronglySorted Z.lt l -> NoDup l.
Proof.
  induction 1 as [|x l S IH F]; constructor; auto. intros H. rewrite Forall_forall in F. specialize (F x H). lia.
Qed.

Lemma filter_all {A} (p : A -> bool) l : (forall x, In x l -> p x = true) -> filter p l = l.
Proof.
  induction l as [|x l IH]; simpl; intros H; auto. rewrite (H x (or_introl eq_refl)), IH; auto.
Qed.

(** ** What is released, over given keys *)

Section Released.
  Variable tau : Z.
  (** The law of a noisy count. *)
  Variable noisy_count : Z -> Z -> R.
  Hypothesis noisy_distribution : forall c, distribution (noisy_count c).

  Definition reaches (v : Z) : option Z := if (tau <=? v)%Z then Some v else None.
  Definition cell (c : Z) : option Z -> R := image reaches (noisy_count c).

  Lemma cell_distribution c : distribution (cell c).
  Proof. apply (image_distribution option_dec), noisy_distribution. Qed.

  (** The probability that a count is shown. *)
  Definition tail (c : Z) : R := 1 - cell c None.

  Lemma cell_at_most c v : cell c v <= 1.
  Proof. apply chance_at_most_one, noisy_distribution. Qed.

  Lemma tail_nonneg c : 0 <= tail c.
  Proof. unfold tail. pose proof (cell_at_most c None). lra. Qed.

  Fixpoint release (ks : list Z) (count : Z -> Z) (w : list Z) : R :=
    match ks with
    | [] => ended w
    | k :: ks => match w with
        | x :: v :: w' => if Z.eq_dec x k then cell (count k) (Some v) * release ks count w' else cell (count k) None * release ks count w
        | _ => cell (count k) None * release ks count w
        end
    end.

  (** Its outcomes: of every key a count, or none. *)
  Fixpoint written (ks : list Z) (os : list (option Z)) : list Z :=
    match ks, os with
    | k :: ks, Some v :: os => k :: v :: written ks os
    | k :: ks, None :: os => written ks os
    | _, _ => []
    end.

  Fixpoint reading (ks : list Z) (w : list Z) : option (list (option Z)) :=
    match ks with
    | [] => match w with [] => Some [] | _ => None end
    | k :: ks => match w with
        | x :: v :: w' => if Z.eq_dec x k then option_map (cons (Some v)) (reading ks w') else option_map (cons None) (reading ks w)
        | _ => option_map (cons None) (reading ks w)
        end
    end.

  Lemma reading_written ks : forall w os, reading ks w = Some os -> w = written ks os.
  Proof.
    induction ks as [|k ks IH]; intros w os E; simpl in E.
    - destruct w; [|discriminate]. injection E as <-. reflexivity.
    - assert (N : forall w, option_map (cons None) (reading ks w) = Some os -> w = written (k :: ks) os).
      { intros w' E'. destruct (reading ks w') as [os'|] eqn:R; [|discriminate]. injection E' as <-. apply IH, R. }
      destruct w as [|x [|v w]]; auto. destruct (Z.eq_dec x k) as [->|]; auto.
      destruct (reading ks w) as [os'|] eqn:R; [|discriminate]. injection E as <-. simpl. rewrite <- (IH _ _ R). reflexivity.
  Qed.

  Lemma written_head ks : forall os x w, written ks os = x :: w -> In x ks.
  Proof.
    induction ks as [|k ks IH]; intros [|[v|] os] x w E; simpl in E; try discriminate.
    - injection E as -> _. left. reflexivity.
    - right. apply (IH _ _ _ E).
  Qed.

  Lemma written_reading ks : NoDup ks -> forall os, length os = length ks -> reading ks (written ks os) = Some os.
  Proof.
    induction 1 as [|k ks Hk N IH]; intros [|o os] L; simpl in *; try discriminate; auto. injection L as L.
    destruct o as [v|]; [destruct (Z.eq_dec k k); [|congruence]; rewrite IH; auto|].
    specialize (IH os L). destruct (written ks os) as [|x [|v w]] eqn:E; [rewrite IH; reflexivity|rewrite IH; reflexivity|].
    destruct (Z.eq_dec x k) as [->|]; [exfalso; apply Hk, (written_head _ _ _ _ E)|]. rewrite IH. reflexivity.
  Qed.

  Lemma release_reading ks (count : Z -> Z) : forall w, release ks count w =
    match reading ks w with Some os => independent (map (fun k => cell (count k)) ks) os | None => 0 end.
  Proof.
    induction ks as [|k ks IH]; intros w; [destruct w; reflexivity|]. cbn [release reading map].
    assert (N : forall w, cell (count k) None * release ks count w = match option_map (cons None) (reading ks w) with
      | Some os => independent (cell (count k) :: map (fun k => cell (count k)) ks) os | None => 0 end).
    { intros w'. rewrite IH. destruct (reading ks w'); simpl; ring. }
    destruct w as [|x [|v w]]; auto. destruct (Z.eq_dec x k); auto. rewrite IH. destruct (reading ks w); simpl; ring.
  Qed.

  Lemma cells_distribution ks (count : Z -> Z) : distribution (independent (map (fun k => cell (count k)) ks)).
  Proof.
    apply (independent_distribution option_dec), Forall_forall. intros f Hf. apply in_map_iff in Hf. destruct Hf as (k & <- & _).
    apply cell_distribution.
  Qed.

  Lemma independent_length {A} (laws : list (A -> R)) : forall os, independent laws os <> 0 -> length os = length laws.
  Proof.
    induction laws as [|p laws IH]; intros [|o os] H; simpl in *; try congruence. f_equal. apply IH. intros E. apply H. rewrite E. ring.
  Qed.

  Lemma release_distribution ks (count : Z -> Z) : NoDup ks -> distribution (release ks count).
  Proof.
    intros N. eapply distribution_ext; [|apply (distribution_rename_possible (independent (map (fun k => cell (count k)) ks)) (written ks) (reading ks))].
    - intros w. symmetry. apply release_reading.
    - apply reading_written.
    - intros os H. apply independent_length in H. rewrite map_length in H. apply written_reading; assumption.
    - apply cells_distribution.
  Qed.

  Lemma release_close o ks (count count' : Z -> Z) (cost : Z -> Z -> R) : proper o ->
    (forall c c', 0 <= cost c c') -> (forall c c', close o (fun _ => cost c c') (noisy_count c) (noisy_count c')) ->
    close o (fun _ => sum (fun k => cost (count k) (count' k)) ks) (release ks count) (release ks count').
  Proof.
    intros Ho P C.
    pose proof (independent_close o option_dec (fun k => cost (count k) (count' k)) (fun k => cell (count k)) (fun k => cell (count' k)) ks Ho) as K.
    assert (X : forall b, In b ks -> distribution (cell (count b)) /\ distribution (cell (count' b)) /\ 0 <= cost (count b) (count' b) /\
      close o (fun _ => cost (count b) (count' b)) (cell (count b)) (cell (count' b))).
    { intros k _. split; [apply cell_distribution|]. split; [apply cell_distribution|]. split; [apply P|].
      apply (image_close option_dec); auto. }
    pose proof (close_rename o Ho (written ks) (reading ks) _ _ _ (reading_written ks) (K X)) as R.
    revert R. apply (close_ext o Ho); [reflexivity|..]; intros w; symmetry; apply release_reading.
  Qed.

  (** Without some of the keys: all of it, but what these are shown with. *)
  Lemma release_absent ks (count : Z -> Z) : forall k v w, ~ In k ks -> release ks count (k :: v :: w) = 0.
  Proof.
    induction ks as [|x ks IH]; intros k v w H; [reflexivity|]. cbn [release]. destruct (Z.eq_dec k x) as [->|]; [exfalso; apply H; left; reflexivity|].
    rewrite IH by (intros K; apply H; right; exact K). ring.
  Qed.

  Lemma release_part p (count : Z -> Z) ks : NoDup ks -> forall w,
    (1 - sum (fun k => tail (count k)) (filter (fun k => negb (p k)) ks)) * release (filter p ks) count w <= release ks count w.
  Proof.
    induction 1 as [|k ks Hk N IH]; intros w; [simpl; lra|].
    assert (Nf : NoDup (filter p ks)) by apply NoDup_filter, N.
    pose proof (nonnegative _ (release_distribution (filter p ks) count Nf)) as F0.
    pose proof (nonnegative _ (release_distribution ks count N)) as R0.
    pose proof (nonnegative _ (cell_distribution (count k))) as C0.
    cbn [filter]. destruct (p k) eqn:Pk; cbn [negb].
    - assert (G : forall o w, (1 - sum (fun k => tail (count k)) (filter (fun k => negb (p k)) ks)) * (cell (count k) o * release (filter p ks) count w) <=
        cell (count k) o * release ks count w).
      { intros o w'. rewrite <- Rmult_assoc, (Rmult_comm _ (cell (count k) o)), Rmult_assoc. apply Rmult_le_compat_l; [apply C0|apply IH]. }
      cbn [release]. destruct w as [|x [|v w]]; try apply G. destruct (Z.eq_dec x k); apply G.
    - cbn [sum].
      assert (G : forall w, (1 - (tail (count k) + sum (fun k => tail (count k)) (filter (fun k => negb (p k)) ks))) * release (filter p ks) count w <=
        cell (count k) None * release ks count w).
      { intros w'. rewrite <- (Rmult_1_l (release (filter p ks) count w')). apply parts_multiply; auto; try lra.
        - apply tail_nonneg.
        - apply sum_nonneg. intros. apply tail_nonneg.
        - unfold tail. lra. }
      cbn [release]. destruct w as [|x [|v w]]; try apply G. destruct (Z.eq_dec x k) as [->|]; [|apply G].
      rewrite release_absent by (intros K; apply filter_In in K; tauto). rewrite Rmult_0_r. apply Rmult_le_pos; auto.
  Qed.
End Released.

(** ** Keys of records *)

Section Discovery.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** The keys that a record counts in: at most so many, each once. *)
  Record Spread := { keys : record -> list Z; most : positive; keys_nodup : forall r, NoDup (keys r);
    keys_few : forall r, (length (keys r) <= Pos.to_nat most)%nat }.
  Variable of : Spread.

  Definition counts_in (k : Z) (r : record) : Z := if in_dec Z.eq_dec k (keys of r) then 1%Z else 0%Z.
  Definition count (T : table) (k : Z) : Z := sum_of (counts_in k) T.
  Definition present (T : table) : list Z := fold_right insert [] (flat_map (keys of) T).

  Lemma present_sorted T : StronglySorted Z.lt (present T).
  Proof. unfold present. induction (flat_map (keys of) T) as [|x l IH]; simpl; [constructor|apply insert_sorted, IH]. Qed.

  Lemma present_in T k : In k (present T) <-> exists r, In r T /\ In k (keys of r).
  Proof.
    rewrite <- in_flat_map. unfold present. induction (flat_map (keys of) T) as [|x l IH]; simpl; [tauto|].
    rewrite insert_in, IH. intuition congruence.
  Qed.

  Lemma present_bag T U : Permutation T U -> present T = present U.
  Proof.
    intros H. apply sorted_unique; try apply present_sorted. intros k. rewrite !present_in.
    split; intros (r & Hr & Hk); exists r; split; auto; [rewrite <- H|rewrite H]; exact Hr.
  Qed.

  Lemma count_bag T U : Permutation T U -> count T = count U.
  Proof. intros H. apply functional_extensionality. intros k. apply sum_of_bag, H. Qed.

  Lemma count_absent T k : ~ In k (present T) -> count T k = 0%Z.
  Proof.
    rewrite present_in. unfold count. induction T as [|r T IH]; intros H; simpl; auto. rewrite IH.
    - unfold counts_in. destruct (in_dec Z.eq_dec k (keys of r)); [|reflexivity]. exfalso. apply H. exists r. split; [left; reflexivity|assumption].
    - intros (r' & Hr & Hk). apply H. exists r'. split; [right; exact Hr|exact Hk].
  Qed.

  Lemma count_nonneg T k : (0 <= count T k)%Z.
  Proof. unfold count. induction T as [|r T IH]; simpl; [lia|]. unfold counts_in at 1. destruct (in_dec Z.eq_dec k (keys of r)); lia. Qed.

  Lemma count_present T k : In k (present T) -> (1 <= count T k)%Z.
  Proof.
    rewrite present_in. intros (r & Hr & Hk). unfold count. induction T as [|x T IH]; [contradiction|]. simpl.
    pose proof (count_nonneg T k) as P. unfold count in P. unfold counts_in at 1. destruct Hr as [->|Hr].
    - destruct (in_dec Z.eq_dec k (keys of r)); [lia|contradiction].
    - specialize (IH Hr). destruct (in_dec Z.eq_dec k (keys of x)); lia.
  Qed.

  (** Different keys: a record adds 1 to at most so many. *)
  Lemma counts_few ks r : NoDup ks -> (contribution (map counts_in ks) r <= Z.pos (most of))%Z.
  Proof.
    intros N. assert (K : contribution (map counts_in ks) r = Z.of_nat (length (filter (fun k => if in_dec Z.eq_dec k (keys of r) then true else false) ks))).
    { clear N. unfold contribution. induction ks as [|k ks IH]; auto. cbn [map fold_right filter]. rewrite IH. unfold counts_in.
      destruct (in_dec Z.eq_dec k (keys of r)); cbn [length]; lia. }
    rewrite K. assert (L : (length (filter (fun k => if in_dec Z.eq_dec k (keys of r) then true else false) ks) <= length (keys of r))%nat).
    { apply NoDup_incl_length; [apply NoDup_filter, N|]. intros k Hk. apply filter_In in Hk. destruct Hk as [_ Hk].
      destruct (in_dec Z.eq_dec k (keys of r)); [assumption|discriminate]. }
    pose proof (keys_few of r). lia.
  Qed.

  Lemma counts_squared ks r : NoDup ks -> (squared (map counts_in ks) r <= Z.pos (most of))%Z.
  Proof.
    intros N. eapply Z.le_trans; [|apply (counts_few ks r N)]. apply Z.eq_le_incl, squared_of_bits. intros g Hg.
    apply in_map_iff in Hg. destruct Hg as (k & <- & _). unfold counts_in. destruct (in_dec Z.eq_dec k (keys of r)); auto.
  Qed.

  Lemma counts_differ ks T U : NoDup ks -> sum (fun k => IZR (Z.abs (count T k - count U k))) ks <= IZR (Z.pos (most of)) * INR (distance T U).
  Proof.
    intros N. pose proof (measure_sensitivity (map counts_in ks) (Z.pos (most of)) (fun r => counts_few ks r N) T U) as K.
    apply IZR_le in K. rewrite mult_IZR, <- INR_IZR_INZ in K. eapply Rle_trans; [|exact K]. apply Req_le. clear.
    unfold measure. induction ks as [|k ks IH]; [reflexivity|]. cbn [map l1 sum]. rewrite plus_IZR, <- IH. reflexivity.
  Qed.

  Lemma counts_differ_squared ks T U : NoDup ks -> sum (fun k => (IZR (count T k) - IZR (count U k)) ^ 2) ks <= IZR (Z.pos (most of)) * INR (distance T U) ^ 2.
  Proof.
    intros N. pose proof (measure_l2 (map counts_in ks) (Z.pos (most of)) (fun r => counts_squared ks r N) T U) as K.
    eapply Rle_trans; [|exact K]. apply Req_le. clear. unfold measure. induction ks as [|k ks IH]; [reflexivity|].
    cbn [map l2 sum]. rewrite IH. reflexivity.
  Qed.

  (** No count of a key moves by more than the distance. *)
  Lemma count_moves T U k : (Z.abs (count T k - count U k) <= Z.of_nat (distance T U))%Z.
  Proof.
    pose proof (measure_sensitivity [counts_in k] 1) as K.
    assert (B : forall x, (contribution [counts_in k] x <= 1)%Z).
    { intros x. unfold contribution, counts_in. simpl. destruct (in_dec Z.eq_dec k (keys of x)); lia. }
    specialize (K B T U). unfold measure in K. cbn [map l1] in K. unfold count. lia.
  Qed.

  (** ** The stability histogram *)

  Section Stable.
    Variables (tau : Z) (delta : R) (show : list Z -> list Z).
    Hypothesis delta_nonneg : 0 <= delta.
    Variable noisy_count : Z -> Z -> R.

    Definition stable_law (T : table) : list Z -> R := image show (release tau noisy_count (present T) (count T)).

    (** The keys that both tables have, with the counts of the first. *)
    Definition shared (T U : table) : list Z := filter (fun k => if in_dec Z.eq_dec k (present U) then true else false) (present T).
    Definition stable_core (T U : table) : list Z -> R := image show (release tau noisy_count (shared T U) (count T)).

    Lemma shared_sym T U : shared T U = shared U T.
    Proof.
      apply sorted_unique; try (apply filter_sorted, present_sorted). intros k. unfold shared. rewrite !filter_In.
      destruct (in_dec Z.eq_dec k (present U)), (in_dec Z.eq_dec k (present T)); intuition congruence.
    Qed.

    Lemma shared_nodup T U : NoDup (shared T U).
    Proof. apply sorted_nodup, filter_sorted, present_sorted. Qed.

    Lemma stable_same T U w : distance T U = 0%nat -> stable_law T w = stable_law U w.
    Proof. intros H. apply distance_zero in H. unfold stable_law. rewrite (present_bag T U H), (count_bag T U H). reflexivity. Qed.

    Lemma core_all T U w : distance T U = 0%nat -> stable_core T U w = stable_law T w.
    Proof.
      intros H. apply distance_zero in H. unfold stable_core, stable_law, shared. rewrite (present_bag T U H), filter_all; auto.
      intros k Hk. destruct (in_dec Z.eq_dec k (present U)); [reflexivity|contradiction].
    Qed.

    Hypothesis noisy_distribution : forall c, distribution (noisy_count c).

    Lemma stable_distribution T : distribution (stable_law T).
    Proof. apply (image_distribution (list_eq_dec Z.eq_dec)), release_distribution; auto. apply sorted_nodup, present_sorted. Qed.

    Lemma stable_core_distribution T U : distribution (stable_core T U).
    Proof. apply (image_distribution (list_eq_dec Z.eq_dec)), release_distribution; auto. apply shared_nodup. Qed.

    (** tail(a) ≤ a * δ / most, for the counts that one record can make on this scale. *)
    Definition safe_for (s : R) : Prop := forall a : nat, (1 <= a)%nat -> INR a <= s ->
      IZR (Z.pos (most of)) * tail tau noisy_count (Z.of_nat a) <= INR a * delta.

    (** Whichever keys one of the tables has alone, and how often. *)
    Theorem stable_below s T U w : safe_for s -> INR (distance T U) <= s ->
      (1 - delta * INR (distance T U)) * stable_core T U w <= stable_law T w.
    Proof.
      intros Safe Hs. apply image_part.
      - apply release_distribution; auto. apply sorted_nodup, present_sorted.
      - apply release_distribution; auto. apply shared_nodup.
      - intros x. set (p := fun k => if in_dec Z.eq_dec k (present U) then true else false).
        set (alone := filter (fun k => negb (p k)) (present T)).
        assert (Na : NoDup alone) by (apply NoDup_filter, sorted_nodup, present_sorted).
        eapply Rle_trans; [|apply (release_part tau noisy_count noisy_distribution p (count T) (present T) (sorted_nodup _ (present_sorted T)) x)].
        apply Rmult_le_compat_r; [apply release_distribution; auto; apply shared_nodup|]. fold alone.
        assert (B : sum (fun k => tail tau noisy_count (count T k)) alone <= delta * INR (distance T U)); [|lra].
        assert (M : 0 < IZR (Z.pos (most of))) by (apply IZR_lt; lia).
        apply (Rmult_le_reg_l (IZR (Z.pos (most of)))); [exact M|]. rewrite <- sum_scale.
        apply Rle_trans with (sum (fun k => delta * IZR (Z.abs (count T k - count U k))) alone).
        + apply sum_le. intros k Hk. apply filter_In in Hk. destruct Hk as [Hk Hn]. unfold p in Hn.
          destruct (in_dec Z.eq_dec k (present U)) as [|Hu]; [discriminate|]. pose proof (count_moves T U k) as Mv.
          rewrite (count_absent U k Hu) in *. pose proof (count_present T k Hk) as C. rewrite Z.sub_0_r, Z.abs_eq in * by lia.
          pose proof (Safe (Z.to_nat (count T k)) ltac:(lia)) as K. rewrite INR_IZR_INZ, Z2Nat.id in K by lia. rewrite (Rmult_comm delta). apply K.
          eapply Rle_trans; [|exact Hs]. rewrite INR_IZR_INZ. apply IZR_le. lia.
        + rewrite sum_scale. pose proof (counts_differ alone T U Na) as K. rewrite <- Rmult_assoc, (Rmult_comm _ delta), Rmult_assoc.
          apply Rmult_le_compat_l; assumption.
    Qed.

    Theorem stable_close o (cost : Z -> Z -> R) T U r : proper o -> (forall c c', 0 <= cost c c') ->
      (forall c c', close o (fun _ => cost c c') (noisy_count c) (noisy_count c')) ->
      (forall ks, NoDup ks -> sum (fun k => cost (count T k) (count U k)) ks <= r) ->
      close o (fun _ => r) (stable_core T U) (stable_core U T).
    Proof.
      intros Ho P C R. unfold stable_core. rewrite (shared_sym U T). pose proof (shared_nodup T U) as N.
      assert (D1 : distribution (release tau noisy_count (shared T U) (count T))) by (apply release_distribution; auto).
      assert (D2 : distribution (release tau noisy_count (shared T U) (count U))) by (apply release_distribution; auto).
      apply (image_close (list_eq_dec Z.eq_dec)); auto.
      apply (close_weaken o Ho (fun _ => sum (fun k => cost (count T k) (count U k)) (shared T U))); [apply D1|apply D2|auto|].
      apply release_close; auto.
    Qed.
  End Stable.
End Discovery.

(** ** As queries *)

Section Queries.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** Any function of what a mechanism releases. *)
  Definition after (show : list Z -> list Z) (q : Mechanism (record := record) (list Z)) : Mechanism (record := record) (list Z).
  Proof.
    refine {| mass := fun e T => image show (mass _ q e T) |}.
    - intros e T He. apply (image_distribution (list_eq_dec Z.eq_dec)), mass_distribution, He.
    - intros e T U v H. assert (E : mass _ q e T = mass _ q e U) by (apply functional_extensionality; intros w; apply mass_same, H).
      rewrite E. reflexivity.
    - intros e T U v He H. apply (image_close (list_eq_dec Z.eq_dec) show Worst e (mass _ q e T) (mass _ q e U) I).
      + apply mass_distribution, He.
      + apply mass_distribution, He.
      + intros w. apply mass_private; assumption.
  Defined.

  Definition after_at_rho (show : list Z -> list Z) (q : RhoMechanism (record := record) (list Z)) : RhoMechanism (record := record) (list Z).
  Proof.
    refine {| rho_mass := fun e T => image show (rho_mass _ q e T) |}.
    - intros e T He. apply (image_distribution (list_eq_dec Z.eq_dec)), rho_distribution, He.
    - intros e T U v H. assert (E : rho_mass _ q e T = rho_mass _ q e U) by (apply functional_extensionality; intros w; apply rho_same, H).
      rewrite E. reflexivity.
    - intros e T U a He Ha. apply (image_close (list_eq_dec Z.eq_dec)); auto; [apply rho_distribution, He|apply rho_distribution, He|].
      apply rho_close; assumption.
  Defined.

  (** The sparse histogram: of all keys of a domain those that reach t. *)
  Record Domain := { domain : list Z; domain_nodup : NoDup domain }.

  Fixpoint reaching (t : Z) (ks vs : list Z) : list Z :=
    match ks, vs with
    | k :: ks, v :: vs => if (t <=? v)%Z then k :: v :: reaching t ks vs else reaching t ks vs
    | _, _ => []
    end.

  Variables (of : Spread (record := record)) (among : Domain) (t : Z) (show : list Z -> list Z).
  Notation statistic := (map (counts_in of) (domain among)).

  Definition sparse : Mechanism (record := record) (list Z) :=
    after (fun vs => show (reaching t (domain among) vs))
      (noisy statistic (most of) (fun r => counts_few of _ r (domain_nodup among))).

  Definition sparse_at_rho : RhoMechanism (record := record) (list Z) :=
    after_at_rho (fun vs => show (reaching t (domain among) vs))
      (noisy_at_rho statistic (most of) (fun r => counts_squared of _ r (domain_nodup among))).
End Queries.

Section Keys.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** The stability histogram: what it counts, its threshold, and the δ that it
      spends for each unit of distance. *)
  Record Stable := { counted : Spread (record := record); threshold : Z; delta_of : R; delta_positive : 0 < delta_of;
    shown_of : list Z -> list Z }.
  Variable q : Stable.

  (** Scale most/ε, and σ² = most/(2ρ). *)
  Definition laplace_count (e : R) : Z -> Z -> R := laplace (rate e (most (counted q))).
  Definition gaussian_count (e : R) (c v : Z) : R :=
    match Rlt_dec 0 (rate e (most (counted q))) with left H => gaussian (rate e (most (counted q))) H c v | right _ => 0 end.

  Lemma laplace_counts e c : 0 < e -> distribution (laplace_count e c).
  Proof. intros He. apply laplace_distribution, rate_pos, He. Qed.

  Lemma gaussian_counts e c : 0 < e -> distribution (gaussian_count e c).
  Proof.
    intros He. unfold gaussian_count. destruct (Rlt_dec 0 (rate e (most (counted q)))) as [H|N]; [apply gaussian_distribution|].
    exfalso. apply N, rate_pos, He.
  Qed.

  (** Whether the threshold is right on a scale. *)
  Definition safe (noisy_count : Z -> Z -> R) (s : R) : bool :=
    forallb (fun a => if Rle_dec (IZR (Z.pos (most (counted q))) * tail (threshold q) noisy_count (Z.of_nat a)) (INR a * delta_of q) then true else false)
      (seq 1 (Z.to_nat (up s))).

  Lemma safe_right noisy_count s : safe noisy_count s = true -> safe_for (counted q) (threshold q) (delta_of q) noisy_count s.
  Proof.
    intros H a H1 Ha. unfold safe in H. rewrite forallb_forall in H.
    assert (I : In a (seq 1 (Z.to_nat (up s)))).
    { apply in_seq. destruct (archimed s) as [U _]. assert (Z.of_nat a < up s)%Z by (apply lt_IZR; rewrite <- INR_IZR_INZ; lra). lia. }
    specialize (H a I). destruct (Rle_dec _ _); [assumption|discriminate].
  Qed.

  Notation law noise := (stable_law (counted q) (threshold q) (shown_of q) noise).
  Notation stable_part noise := (stable_core (counted q) (threshold q) (shown_of q) noise).

  Theorem laplace_core_close e T U : 0 < e ->
    close Worst (fun _ => e * INR (distance T U)) (stable_part (laplace_count e) T U) (stable_part (laplace_count e) U T).
  Proof.
    intros He. set (r := rate e (most (counted q))). assert (Hr : 0 < r) by (apply rate_pos, He).
    apply (stable_close (counted q) (threshold q) (shown_of q) (laplace_count e) (fun c => laplace_counts e c He) Worst
      (fun c c' => r * IZR (Z.abs (c - c'))) T U); [exact I|..].
    - intros c c'. apply Rmult_le_pos; [lra|]. apply IZR_le. lia.
    - intros c c' v. apply laplace_private, Hr.
    - intros ks N. rewrite sum_scale. pose proof (counts_differ (counted q) ks T U N) as K.
      rewrite <- (rate_delta e (most (counted q))), Rmult_assoc. fold r. apply Rmult_le_compat_l; lra.
  Qed.

  Theorem laplace_core_concentrated e T U a : 0 < e -> (0 < a)%nat ->
    close (Order a) (fun _ => e * INR (distance T U) * tanh (e * INR (distance T U) / 2))
      (stable_part (laplace_count e) T U) (stable_part (laplace_count e) U T).
  Proof.
    intros He Ha. apply (private_close a (list_eq_dec Z.eq_dec)); auto.
    - apply Rmult_le_pos; [lra|apply pos_INR].
    - apply stable_core_distribution. intros c. apply laplace_counts, He.
    - apply stable_core_distribution. intros c. apply laplace_counts, He.
    - intros v. apply (laplace_core_close e T U He).
    - intros v. rewrite (distance_sym T U). apply (laplace_core_close e U T He).
  Qed.

  Theorem gaussian_core_close e T U a : 0 < e -> (0 < a)%nat ->
    close (Order a) (fun _ => e * INR (distance T U) ^ 2) (stable_part (gaussian_count e) T U) (stable_part (gaussian_count e) U T).
  Proof.
    intros He Ha. set (r := rate e (most (counted q))). assert (Hr : 0 < r) by (apply rate_pos, He).
    apply (stable_close (counted q) (threshold q) (shown_of q) (gaussian_count e) (fun c => gaussian_counts e c He) (Order a)
      (fun c c' => r * (IZR c - IZR c') ^ 2) T U); [exact Ha|..].
    - intros c c'. apply Rmult_le_pos; [lra|apply pow2_ge_0].
    - intros c c'. unfold gaussian_count. fold r. destruct (Rlt_dec 0 r) as [H|]; [|contradiction].
      apply (gaussian_close r H a c c' Ha).
    - intros ks N. rewrite sum_scale. pose proof (counts_differ_squared (counted q) ks T U N) as K.
      rewrite <- (rate_delta e (most (counted q))) at 1. rewrite Rmult_assoc. fold r. apply Rmult_le_compat_l; lra.
  Qed.
End Keys.

(** ** The threshold as a number

    For Laplace noise the tail is at most a^m/(1 + a), a = exp(-ε/most) and m what
    is missing to the threshold.  With a rational bound of a from above the
    condition is a computation: [safe_q], which [ComputeBooks] runs. *)

Section LaplaceTail.
  Variable r : R.
  Hypothesis r_pos : 0 < r.
  Notation a := (decay r).

  (** c + m, c + m + 1, … : a geometric series. *)
  Lemma laplace_run c m n : sum (laplace r c) (map (fun i => c + Z.of_nat (m + i))%Z (seq 0 n)) = a ^ m / (1 + a) * (1 - a ^ n).
  Proof.
    pose proof (decay_range r r_pos) as A. induction n as [|n IH]; [simpl; ring|].
    rewrite seq_S, map_app, sum_app, IH. cbn [map sum]. rewrite Nat.add_0_l. unfold laplace.
    replace (Z.abs_nat (c + Z.of_nat (m + n) - c)) with (m + n)%nat by lia. rewrite pow_add. simpl. field. lra.
  Qed.

  Lemma laplace_beyond c m l : NoDup l -> (forall v, In v l -> (c + Z.of_nat m <= v)%Z) -> sum (laplace r c) l <= a ^ m / (1 + a).
  Proof.
    intros N H. pose proof (decay_range r r_pos) as A.
    assert (B : exists n, forall v, In v l -> (v < c + Z.of_nat (m + n))%Z).
    { clear N. induction l as [|w l IH]; [exists O; intros v []|]. destruct IH as [n IH]; [intros v Hv; apply H; right; exact Hv|].
      exists (n + Z.to_nat (w - c) + 1)%nat. specialize (H w (or_introl eq_refl)). intros v [<-|Hv]; [lia|]. specialize (IH v Hv). lia. }
    destruct B as [n B]. eapply Rle_trans.
    - apply (sum_covered Z.eq_dec (laplace r c) l (map (fun i => c + Z.of_nat (m + i))%Z (seq 0 n))); auto.
      + intros v. apply laplace_nonneg, r_pos.
      + apply FinFun.Injective_map_NoDup; [intros i j E; lia|apply seq_NoDup].
      + intros v Hv Hn. exfalso. apply Hn, in_map_iff. exists (Z.to_nat (v - c - Z.of_nat m)). specialize (H v Hv). specialize (B v Hv).
        split; [lia|apply in_seq; lia].
    - rewrite laplace_run. assert (0 <= a ^ m / (1 + a)).
      { apply Rmult_le_pos; [apply pow_le; lra|left; apply Rinv_0_lt_compat; lra]. }
      assert (0 <= a ^ n) by (apply pow_le; lra). pose proof (Rmult_le_pos _ _ H0 H1). lra.
  Qed.

  Lemma laplace_tail tau c m : (c + Z.of_nat m = tau)%Z -> tail tau (laplace r) c <= a ^ m / (1 + a).
  Proof.
    intros E. unfold tail. pose proof (laplace_distribution r c r_pos) as P. apply le_epsilon. intros d Hd.
    destruct (near_one _ P d Hd) as (l & N & S).
    rewrite (sum_by option_dec (reaches tau) _ l (nodup option_dec (None :: map (reaches tau) l)) (NoDup_nodup _ _)) in S
      by (intros x Hx; apply nodup_In; right; apply in_map, Hx).
    set (yes := filter (fun v => (tau <=? v)%Z) l). set (no := filter (fun v => negb (tau <=? v)%Z) l).
    assert (T : sum (laplace r c) l = sum (laplace r c) yes + sum (laplace r c) no).
    { unfold yes, no. clear. induction l as [|v l IH]; simpl; [ring|]. destruct (tau <=? v)%Z; simpl; rewrite IH; ring. }
    rewrite <- (sum_by option_dec (reaches tau)) in S by (apply NoDup_nodup || (intros x Hx; apply nodup_In; right; apply in_map, Hx)).
    assert (Y : sum (laplace r c) yes <= a ^ m / (1 + a)).
    { apply laplace_beyond; [apply NoDup_filter, N|]. intros v Hv. apply filter_In in Hv. destruct Hv as [_ Hv]. apply Z.leb_le in Hv. lia. }
    assert (Z : sum (laplace r c) no <= cell tau (laplace r) c None).
    { apply chance_above; [apply P|apply NoDup_filter, N|]. intros v Hv. apply filter_In in Hv. destruct Hv as [_ Hv]. unfold reaches.
      destruct (tau <=? v)%Z; [discriminate|reflexivity]. }
    lra.
  Qed.

  (** With a bound A of a from above. *)
  Lemma laplace_tail_bound tau c m A : (c + Z.of_nat (S m) = tau)%Z -> a <= A -> tail tau (laplace r) c <= A ^ S m / (1 + A).
  Proof.
    intros E L. eapply Rle_trans; [apply (laplace_tail tau c (S m) E)|]. pose proof (decay_range r r_pos) as P.
    assert (F : forall x, 0 < x -> x ^ S m / (1 + x) = x ^ m * (x / (1 + x))) by (intros; simpl; field; lra). rewrite !F by lra.
    apply Rmult_le_compat; [apply pow_le; lra|apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]|apply pow_incr; lra|].
    apply (Rmult_le_reg_r (1 + a)); [lra|]. apply (Rmult_le_reg_r (1 + A)); [lra|].
    replace (a / (1 + a) * (1 + a) * (1 + A)) with (a * (1 + A)) by (field; lra).
    replace (A / (1 + A) * (1 + a) * (1 + A)) with (A * (1 + a)) by (field; lra). lra.
  Qed.
End LaplaceTail.
