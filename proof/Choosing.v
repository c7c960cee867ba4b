(** * The exponential mechanism, at ρ

    Between two lists of scores whose differences stay within a window of width w,
    the ratio of the two laws stays within a factor exp(rate * w / 2): its range is
    bounded, and twice as narrow as permute-and-flip's may be.  So the mechanism
    that loses (η D)² / 8 at distance D runs at the rate η/Δ, or 2η/Δ where one
    more record can only lower, or only raise, every score. *)

Require Import Reals Lra Lia List Arith ZArith Permutation.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Mechanisms Fpinq.Monotone Fpinq.Private Fpinq.Closeness Fpinq.Moments.
Import ListNotations.
Open Scope R_scope.

(** The differences are within a window of width w, wherever it is. *)
Definition apart (w : Z) (ss ts : list Z) : Prop := exists lo, Forall2 (fun s t => (lo <= s - t <= lo + w)%Z) ss ts.

Lemma apart_near delta ss ts : near delta ss ts -> apart (2 * delta) ss ts.
Proof. intros H. exists (- delta)%Z. induction H; constructor; auto. lia. Qed.

Lemma apart_falls delta ss ts : falls delta ss ts -> apart delta ss ts /\ apart delta ts ss.
Proof.
  intros H. split; [exists 0%Z|exists (- delta)%Z]; unfold falls in H; induction H; constructor; auto; lia.
Qed.

Lemma apart_trans v w ss ts us : apart v ss ts -> apart w ts us -> apart (v + w) ss us.
Proof.
  intros [l1 H1] [l2 H2]. exists (l1 + l2)%Z. revert us H2.
  induction H1 as [|s t ss ts H H1 IH]; intros us H2; inversion H2; subst; constructor; auto. lia.
Qed.

Section Window.
  Variables (rate : R) (rate_pos : 0 < rate) (w : Z) (ss ts : list Z).
  Hypothesis w_nonneg : (0 <= w)%Z.
  Hypothesis window : apart w ss ts.
  Hypothesis some : ss <> [].

  Theorem choose_close a : (0 < a)%nat ->
    close (Order a) (fun _ => (rate / 2 * IZR w) ^ 2 / 8) (choose rate ss) (choose rate ts).
  Proof.
    intros Ha. destruct window as [lo H].
    assert (L : length ss = length ts) by (clear - H; induction H; simpl; auto).
    assert (some' : ts <> []) by (intros E; apply some; rewrite E in L; destruct ss; [reflexivity|discriminate]).
    pose proof (total_weight_pos rate ss some) as W. pose proof (total_weight_pos rate ts some') as W'.
    set (V := total_weight rate ss) in *. set (V' := total_weight rate ts) in *.
    pose proof (choose_distribution rate ss some) as D. pose proof (choose_distribution rate ts some') as D'.
    assert (One : forall us, us <> [] -> sum (choose rate us) (seq 0 (length us)) = 1).
    { intros us N. pose proof (total_weight_pos rate us N) as P. set (X := total_weight rate us) in *.
      assert (K : forall l, sum (fun i => match nth_error l i with Some s => weight rate s / X | None => 0 end)
        (seq 0 (length l)) = sum (weight rate) l / X).
      { induction l as [|s l IH]; simpl; [unfold Rdiv; ring|]. rewrite <- seq_shift, sum_map. cbn [nth_error].
        rewrite IH. unfold Rdiv. ring. }
      unfold choose. fold X. rewrite K. change (sum (weight rate) us) with X. field. lra. }
    apply (range_close (choose rate ss) (choose rate ts) (seq 0 (length ss)) (exp (rate / 2 * IZR lo) * (V' / V))); auto.
    - apply Rmult_lt_0_compat; [apply exp_pos|]. apply Rdiv_lt_0_compat; assumption.
    - apply Rmult_le_pos; [lra|]. apply IZR_le. assumption.
    - apply D'.
    - intros i. unfold choose. destruct (nth_error ss i) as [s|] eqn:Es.
      + assert (K : exists t, nth_error ts i = Some t /\ (lo <= s - t <= lo + w)%Z).
        { clear - H Es. revert i Es. induction H as [|s' t' ss ts Hst H IH]; intros [|i] Es; simpl in *; try discriminate.
          - injection Es as ->. eauto.
          - eauto. }
        destruct K as (t & -> & Hst). fold V V'. unfold weight.
        replace (exp (rate / 2 * IZR lo) * (V' / V) * (exp (rate / 2 * IZR t) / V'))
          with (exp (rate / 2 * IZR lo) * exp (rate / 2 * IZR t) / V) by (field; lra).
        replace (exp (rate / 2 * IZR lo) * (V' / V) * exp (rate / 2 * IZR w) * (exp (rate / 2 * IZR t) / V'))
          with (exp (rate / 2 * IZR lo) * exp (rate / 2 * IZR w) * exp (rate / 2 * IZR t) / V) by (field; lra).
        rewrite <- !exp_plus. assert (Q : 0 < / V) by (apply Rinv_0_lt_compat; assumption).
        destruct Hst as [B1 B2]. apply IZR_le in B1, B2. rewrite plus_IZR in B2. rewrite minus_IZR in B1, B2.
        split; (apply Rmult_le_compat_r; [lra|]; apply exp_mono).
        * assert (rate / 2 * IZR lo <= rate / 2 * (IZR s - IZR t)) by (apply Rmult_le_compat_l; lra). lra.
        * assert (rate / 2 * (IZR s - IZR t) <= rate / 2 * (IZR lo + IZR w)) by (apply Rmult_le_compat_l; lra). lra.
      + assert (K : nth_error ts i = None) by (apply nth_error_None; apply nth_error_None in Es; lia).
        rewrite K, !Rmult_0_r. lra.
    - rewrite L. apply One, some'.
    - exact Nat.eq_dec.
    - apply seq_NoDup.
    - intros i Hi. unfold choose. rewrite (proj2 (nth_error_None ss i)); [reflexivity|]. rewrite in_seq in Hi. lia.
  Qed.
End Window.

(** ** On bags *)

Section Bags.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).
  Variables (scores : table -> list Z) (of_bags : forall T U, Permutation T U -> scores T = scores U).

  (** One record moves the differences within a window of width w: n records
      within n * w. *)
  Lemma apart_at w : (0 <= w)%Z -> (forall r T, apart w (scores (r :: T)) (scores T) /\ apart w (scores T) (scores (r :: T))) ->
    forall n T U, distance T U = n -> apart (w * Z.of_nat n) (scores T) (scores U).
  Proof.
    intros W H. induction n as [|n IH]; intros T U E.
    - apply distance_zero in E. rewrite (of_bags T U E). exists 0%Z.
      induction (scores U); constructor; auto. lia.
    - destruct (distance_path n T U E) as (V & H1 & H2). specialize (IH V U H2).
      replace (w * Z.of_nat (S n))%Z with (w + w * Z.of_nat n)%Z by lia. eapply apart_trans; [|exact IH].
      destruct (neighbours T V H1) as (r & [K|K]); rewrite (of_bags _ _ K); apply H.
  Qed.
End Bags.
