(** * Permute-and-flip

    Choosing among candidates, better than the exponential mechanism: visit the
    candidates in a uniformly random order; at each, flip a coin that accepts
    candidate i with probability exp(rate * (s_i - s_max)); stop at the first
    that is accepted.  A best candidate is always accepted, so the visit ends. *)

Require Import Reals Lra Lia List Arith ZArith.
Require Import Fpinq.Probability Fpinq.Mechanisms.
Import ListNotations.
Open Scope R_scope.

(** ** The visit *)

(** All ways to pick one candidate; with it, those that remain. *)
Fixpoint picks {A} (L : list A) : list (A * list A) :=
  match L with [] => [] | x :: L => (x, L) :: map (fun '(y, M) => (y, x :: M)) (picks L) end.

Lemma picks_in {A} (L : list A) s M : In (s, M) (picks L) ->
  In s L /\ length L = S (length M) /\ (forall x, In x M -> In x L) /\ (forall x, In x L -> x = s \/ In x M).
Proof.
  revert s M. induction L as [|y L IH]; intros s M H; simpl in H; [contradiction|]. destruct H as [E|H].
  - injection E as -> ->. simpl. repeat split; auto. intros x [->|Hx]; auto.
  - apply in_map_iff in H. destruct H as ([t N] & E & H). injection E as -> <-.
    destruct (IH _ _ H) as (H1 & H2 & H3 & H4). simpl. repeat split; auto.
    + intros x [->|Hx]; auto.
    + intros x [->|Hx]; auto. destruct (H4 x Hx); auto.
Qed.

(** The sum of f s M over all picks. *)
Definition over {A} (L : list A) (f : A -> list A -> R) : R := sum (fun p => f (fst p) (snd p)) (picks L).

Lemma over_cons {A} (x : A) L f : over (x :: L) f = f x L + over L (fun s M => f s (x :: M)).
Proof. unfold over. simpl. rewrite sum_map. f_equal. apply sum_ext. intros [y M] _. reflexivity. Qed.

Lemma over_ext {A} (L : list A) f g : (forall s M, In (s, M) (picks L) -> f s M = g s M) -> over L f = over L g.
Proof. intros H. apply sum_ext. intros [s M] K. apply H, K. Qed.

Lemma over_le {A} (L : list A) f g : (forall s M, In (s, M) (picks L) -> f s M <= g s M) -> over L f <= over L g.
Proof. intros H. apply sum_le. intros [s M] K. apply H, K. Qed.

Lemma over_plus {A} (L : list A) f g : over L (fun s M => f s M + g s M) = over L f + over L g.
Proof. unfold over. rewrite <- sum_plus. reflexivity. Qed.

Lemma over_scale {A} (L : list A) c f : over L (fun s M => c * f s M) = c * over L f.
Proof. unfold over. rewrite <- sum_scale. reflexivity. Qed.

Lemma over_one {A} (L : list A) : over L (fun _ _ => 1) = INR (length L).
Proof.
  induction L as [|x L IH]; [reflexivity|]. rewrite over_cons, IH. change (length (x :: L)) with (S (length L)).
  rewrite S_INR. ring.
Qed.

Lemma over_nonneg {A} (L : list A) f : (forall s M, 0 <= f s M) -> 0 <= over L f.
Proof. intros H. apply sum_nonneg. intros [s M]. apply H. Qed.

(** Picking s and then t is as likely as picking t and then s. *)
Lemma over_swap {A} L : forall g : A -> A -> list A -> R,
  over L (fun s M => over M (fun t N => g s t N)) = over L (fun t M => over M (fun s N => g s t N)).
Proof.
  induction L as [|x L IH]; intros g; [reflexivity|]. rewrite !over_cons.
  rewrite (over_ext L (fun s M => over (x :: M) (fun t N => g s t N))
    (fun s M => g s x M + over M (fun t N => g s t (x :: N))))
    by (intros s M _; exact (over_cons x M (fun t N => g s t N))).
  rewrite (over_ext L (fun t M => over (x :: M) (fun s N => g s t N))
    (fun t M => g x t M + over M (fun s N => g s t (x :: N))))
    by (intros t M _; exact (over_cons x M (fun s N => g s t N))).
  rewrite !over_plus, (IH (fun s t N => g s t (x :: N))). change (over L (g x)) with (over L (fun t N => g x t N)).
  ring.
Qed.

(** ** The probabilities *)

Section Flip.
  Context {A : Type}.

  (** [flip a f n L]: the n candidates of L are still to be visited, and a is
      the chance of acceptance; the expectation of f at the accepted one.  With f
      the indicator of a candidate, the probability that it is chosen. *)
  Fixpoint flip (a f : A -> R) (n : nat) (L : list A) : R :=
    match n with
    | O => 0
    | S m => / INR n * over L (fun s M => a s * f s + (1 - a s) * flip a f m M)
    end.

  (** The probability of reaching one more candidate, beside the n of L, before
      any of them is accepted. *)
  Fixpoint reach (a : A -> R) (n : nat) (L : list A) : R :=
    match n with
    | O => 1
    | S m => / INR (S n) * (1 + over L (fun t N => (1 - a t) * reach a m N))
    end.

  Definition accepted (a f : A -> R) (n : nat) (L : list A) : R :=
    match n with O => 0 | S m => over L (fun s M => a s * f s * reach a m M) end.

  Section Closed.
    Variables a f : A -> R.

    (** To be chosen is to be reached and then accepted. *)
    Lemma flip_accepted n : forall L, length L = n -> flip a f n L = accepted a f n L.
    Proof.
      induction n as [|n IH]; intros L HL; [reflexivity|]. cbn [flip accepted].
      rewrite (over_ext L _ (fun s M => a s * f s + (1 - a s) * accepted a f n M)).
      2:{ intros s M H. destruct (picks_in L s M H) as (_ & E & _). rewrite IH by lia. reflexivity. }
      destruct n as [|n].
      - simpl. rewrite Rinv_1, Rmult_1_l. apply over_ext. intros. ring.
      - cbn [accepted reach].
        rewrite (over_ext L
          (fun s M => a s * f s * (/ INR (S (S n)) * (1 + over M (fun t N => (1 - a t) * reach a n N))))
          (fun s M => / INR (S (S n)) * (a s * f s + over M (fun t N => a s * f s * ((1 - a t) * reach a n N))))).
        2:{ intros s M _. rewrite over_scale. ring. }
        rewrite over_scale, over_plus, over_plus. f_equal. f_equal.
        rewrite (over_swap L (fun s t N => a s * f s * ((1 - a t) * reach a n N))).
        apply over_ext. intros t M _. rewrite <- over_scale. apply over_ext. intros. ring.
    Qed.
  End Closed.

  Section Bounds.
    Variable a : A -> R.
    Hypothesis a_range : forall s, 0 <= a s <= 1.

    Lemma flip_nonneg f n : (forall s, 0 <= f s) -> forall L, 0 <= flip a f n L.
    Proof.
      intros Hf. induction n as [|n IH]; intros L; [simpl; lra|]. cbn [flip].
      apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, lt_0_INR; lia|]. apply over_nonneg. intros s M.
      specialize (a_range s). specialize (Hf s). specialize (IH M). nra.
    Qed.

    Lemma reach_nonneg n : forall L, 0 <= reach a n L.
    Proof.
      induction n as [|n IH]; intros L; [simpl; lra|]. cbn [reach].
      apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, lt_0_INR; lia|].
      apply Rplus_le_le_0_compat; [lra|]. apply over_nonneg. intros s M. specialize (a_range s). specialize (IH M).
      nra.
    Qed.

    (** At most one candidate is accepted. *)
    Lemma flip_le_one n : forall L, length L = n -> flip a (fun _ => 1) n L <= 1.
    Proof.
      induction n as [|n IH]; intros L HL; [simpl; lra|]. cbn [flip].
      assert (Hn : 0 < INR (S n)) by (apply lt_0_INR; lia).
      apply Rmult_le_reg_l with (INR (S n)); [exact Hn|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l, Rmult_1_r by lra.
      replace (INR (S n)) with (over L (fun _ _ => 1)) by (rewrite over_one, HL; reflexivity). apply over_le.
      intros s M H. destruct (picks_in L s M H) as (_ & E & _).
      specialize (IH M ltac:(lia)). specialize (a_range s). nra.
    Qed.

    (** One is, if some candidate is always accepted. *)
    Lemma flip_one n : forall L, length L = n -> (exists s, In s L /\ a s = 1) -> flip a (fun _ => 1) n L = 1.
    Proof.
      induction n as [|n IH]; intros L HL (b & Hb & Eb); [destruct L; [contradiction|discriminate]|]. cbn [flip].
      assert (Hn : 0 < INR (S n)) by (apply lt_0_INR; lia).
      rewrite (over_ext L _ (fun _ _ => 1)); [rewrite over_one, HL; field; lra|].
      intros s M H. destruct (picks_in L s M H) as (_ & E & _ & K). destruct (K b Hb) as [->|HM]; [rewrite Eb; ring|].
      rewrite IH; [ring|lia|exists b; auto].
    Qed.
  End Bounds.

  (** ** Privacy

      Two sets of acceptance chances with b <= l * a and a <= m * b: no outcome
      is more than l * m times as likely. *)
  Section Private.
    Variables (a b : A -> R) (l m : R).
    Hypothesis a_range : forall s, 0 <= a s <= 1.
    Hypothesis b_range : forall s, 0 <= b s <= 1.
    Hypothesis l_ge : 1 <= l.
    Hypothesis b_le : forall s, b s <= l * a s.
    Hypothesis a_le : forall s, a s <= m * b s.

    (** Raising the others' chances by l makes a candidate at most l times harder
        to reach, because in the old visit at most one of the others was
        accepted. *)
    Lemma reach_private n : forall L, length L = n -> reach a n L <= l * reach b n L.
    Proof.
      induction n as [|n IH]; intros L HL; [simpl; lra|]. cbn [reach].
      assert (Hn : 0 < / INR (S (S n))) by (apply Rinv_0_lt_compat, lt_0_INR; lia).
      rewrite (Rmult_comm l), Rmult_assoc. apply Rmult_le_compat_l; [lra|].
      assert (W : over L (fun t N => a t * reach a n N) <= 1).
      { pose proof (flip_le_one a a_range (S n) L HL) as H. rewrite flip_accepted in H by exact HL.
        cbn [accepted] in H.
        rewrite (over_ext L _ (fun t N => a t * reach a n N)) in H by (intros; ring). exact H. }
      assert (K : over L (fun t N => (1 - a t) * reach a n N + - (l - 1) * (a t * reach a n N)) <=
        over L (fun t N => l * ((1 - b t) * reach b n N))).
      { apply over_le. intros t N H. destruct (picks_in L t N H) as (_ & E & _). specialize (IH N ltac:(lia)).
        pose proof (reach_nonneg a a_range n N). pose proof (b_range t). pose proof (b_le t).
        assert ((1 - b t) * reach a n N <= (1 - b t) * (l * reach b n N)) by (apply Rmult_le_compat_l; lra).
        assert (0 <= (l * a t - b t) * reach a n N) by (apply Rmult_le_pos; lra). lra. }
      rewrite over_plus, !over_scale in K.
      assert ((l - 1) * over L (fun t N => a t * reach a n N) <= (l - 1) * 1) by (apply Rmult_le_compat_l; lra).
      lra.
    Qed.

    Theorem flip_private f n L : (forall s, 0 <= f s) -> length L = n -> flip a f n L <= l * m * flip b f n L.
    Proof.
      intros Hf HL. rewrite !flip_accepted by exact HL. destruct n as [|n]; [simpl; lra|]. cbn [accepted].
      rewrite <- over_scale. apply over_le. intros s M H. destruct (picks_in L s M H) as (_ & E & _).
      pose proof (reach_private n M ltac:(lia)) as R. pose proof (reach_nonneg a a_range n M).
      replace (l * m * (b s * f s * reach b n M)) with ((m * b s * f s) * (l * reach b n M)) by ring.
      apply Rmult_le_compat; auto.
      - apply Rmult_le_pos; [apply a_range|apply Hf].
      - apply Rmult_le_compat_r; auto.
    Qed.
  End Private.

  Lemma flip_sum a (fs : list (A -> R)) n : forall L, sum (fun f => flip a f n L) fs =
    flip a (fun s => sum (fun f => f s) fs) n L.
  Proof.
    induction fs as [|f fs IH]; intros L; simpl.
    - revert L. induction n as [|n IHn]; intros L; [reflexivity|]. cbn [flip].
      rewrite (over_ext L _ (fun _ _ => 0 * 1)).
      + rewrite over_scale. ring.
      + intros s M _. rewrite <- IHn. ring.
    - rewrite IH. clear IH. revert L. induction n as [|n IHn]; intros L; [simpl; ring|]. cbn [flip].
      rewrite <- Rmult_plus_distr_l, <- over_plus. f_equal. apply over_ext. intros s M _. rewrite <- IHn. ring.
  Qed.

  Lemma flip_ext a f g n : forall L, (forall s, In s L -> f s = g s) -> flip a f n L = flip a g n L.
  Proof.
    induction n as [|n IH]; intros L H; [reflexivity|]. cbn [flip]. f_equal. apply over_ext. intros s M K.
    destruct (picks_in L s M K) as (Hs & _ & HM & _). rewrite (H s Hs), (IH M); auto.
  Qed.
End Flip.

(** ** The mechanism *)

Fixpoint top (scores : list Z) : Z := match scores with [] => 0%Z | [s] => s | s :: ss => Z.max s (top ss) end.

Lemma top_cons s t ss : top (s :: t :: ss) = Z.max s (top (t :: ss)).
Proof. reflexivity. Qed.

Lemma top_ge scores s : In s scores -> (s <= top scores)%Z.
Proof.
  induction scores as [|t [|u ss] IH]; intros H; [contradiction|destruct H as [->|[]]; simpl; lia|].
  rewrite top_cons. destruct H as [->|H]; [lia|]. specialize (IH H). lia.
Qed.

Lemma top_in scores : scores <> [] -> In (top scores) scores.
Proof.
  induction scores as [|t [|u ss] IH]; intros H; [congruence|left; reflexivity|]. rewrite top_cons.
  destruct (Z.max_spec t (top (u :: ss))) as [[_ ->]|[_ ->]]; [right; apply IH; discriminate|left; reflexivity].
Qed.

Lemma top_near delta ss ts : near delta ss ts -> ss <> [] -> (Z.abs (top ss - top ts) <= delta)%Z.
Proof.
  induction 1 as [|s t ss ts H K IH]; intros N; [congruence|].
  inversion K; subst; [simpl; exact H|]. rewrite !top_cons. specialize (IH ltac:(discriminate)). lia.
Qed.

Section Mechanism.
  Variable rate : R.
  Hypothesis rate_pos : 0 < rate.

  (** A position beyond the list is never visited; [Z.min 0] only matters there. *)
  Definition acceptance (scores : list Z) (i : nat) : R :=
    exp (rate * IZR (Z.min 0 (nth i scores 0%Z - top scores))).

  Definition permute_and_flip (scores : list Z) (i : nat) : R :=
    flip (acceptance scores) (certain Nat.eq_dec i) (length scores) (seq 0 (length scores)).

  Lemma acceptance_range scores i : 0 <= acceptance scores i <= 1.
  Proof.
    unfold acceptance. split; [left; apply exp_pos|]. rewrite <- exp_0. apply exp_mono.
    assert (IZR (Z.min 0 (nth i scores 0%Z - top scores)) <= 0) by (apply IZR_le; lia). nra.
  Qed.

  Lemma certain_nonneg (i j : nat) : 0 <= certain Nat.eq_dec i j.
  Proof. unfold certain. destruct (Nat.eq_dec i j); lra. Qed.

  Theorem permute_and_flip_distribution scores : scores <> [] -> distribution (permute_and_flip scores).
  Proof.
    intros H. apply (finite_distribution Nat.eq_dec _ (seq 0 (length scores))).
    - intros i. apply flip_nonneg; [apply acceptance_range|apply certain_nonneg].
    - apply seq_NoDup.
    - intros i Hi. unfold permute_and_flip. rewrite (flip_ext _ _ (fun s => sum (fun f => f s) [])).
      + rewrite <- flip_sum. reflexivity.
      + intros s Hs. unfold certain. simpl. destruct (Nat.eq_dec i s); [subst; contradiction|reflexivity].
    - unfold permute_and_flip.
      rewrite <- (sum_map (fun f => flip (acceptance scores) f (length scores) (seq 0 (length scores)))
        (certain Nat.eq_dec)), flip_sum.
      rewrite (flip_ext _ _ (fun _ => 1)).
      + apply flip_one; [apply seq_length|].
        destruct (In_nth scores (top scores) 0%Z (top_in scores H)) as (i & Hi & E).
        exists i. split; [apply in_seq; lia|]. unfold acceptance. rewrite E, Z.sub_diag. simpl. rewrite Rmult_0_r.
        apply exp_0.
      + intros s Hs. rewrite sum_map. rewrite (sum_ext _ (fun i => if Nat.eq_dec s i then 1 else 0)).
        * rewrite (sum_indicator Nat.eq_dec (fun _ => 1)); auto. apply seq_NoDup.
        * intros i _. unfold certain. destruct (Nat.eq_dec i s), (Nat.eq_dec s i); congruence.
  Qed.

  (** Scores that may move either way, each by at most Δ: twice the rate. *)
  Theorem permute_and_flip_private delta ss ts i : near delta ss ts -> ss <> [] ->
    permute_and_flip ss i <= permute_and_flip ts i * exp (2 * rate * IZR delta).
  Proof.
    intros H N. assert (L : length ss = length ts) by (clear N; induction H; simpl; auto).
    pose proof (top_near delta ss ts H N) as T.
    assert (Hn : forall j, (Z.abs (nth j ss 0 - nth j ts 0) <= Z.max 0 delta)%Z).
    { clear N T L. induction H as [|s t ss ts Hst H IH]; intros [|j]; simpl; try lia. apply IH. }
    assert (Hd : (0 <= delta)%Z) by lia. rewrite Z.max_r in Hn by lia.
    set (k := (top ts - top ss)%Z).
    unfold permute_and_flip. rewrite <- L, Rmult_comm.
    replace (exp (2 * rate * IZR delta)) with (exp (rate * IZR (delta - k)) * exp (rate * IZR (delta + k))).
    2:{ rewrite <- exp_plus. f_equal. rewrite minus_IZR, plus_IZR. ring. }
    assert (Hle : forall x y z, (x <= y + z)%Z ->
      exp (rate * IZR x) <= exp (rate * IZR z) * exp (rate * IZR y)).
    { intros x y z Hxyz. rewrite <- exp_plus. apply exp_mono. apply IZR_le in Hxyz. rewrite plus_IZR in Hxyz. nra. }
    apply flip_private; auto using acceptance_range, certain_nonneg, seq_length.
    - rewrite <- exp_0. apply exp_mono. assert (0 <= IZR (delta - k)) by (apply IZR_le; unfold k; lia). nra.
    - intros j. apply Hle. specialize (Hn j). unfold k. lia.
    - intros j. apply Hle. specialize (Hn j). unfold k. lia.
  Qed.
End Mechanism.
