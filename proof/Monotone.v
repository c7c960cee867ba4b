(** * Permute-and-flip, for scores that move one way

    If one more record lowers every score or leaves it, and none by more than
    Δ, the coins may be twice as sharp: at the rate λ = e/Δ the choice is
    e-private.  With scores that may move either way it takes λ = e/(2Δ).

    Reason: when all scores fall, the best one falls too, by some k between 0
    and Δ.  A candidate's gap to the best then shrinks by at most k and grows
    by at most Δ - k, so the two factors of [flip_private] multiply to
    exp(λk) * exp(λ(Δ - k)) = exp(λΔ), whatever k is. *)

Require Import Reals Lra Lia List Arith ZArith.
Require Import Fpinq.Probability Fpinq.PermuteAndFlip.
Import ListNotations.
Open Scope R_scope.

(** From ss to ts every score falls by 0 … Δ. *)
Definition falls (delta : Z) : list Z -> list Z -> Prop := Forall2 (fun s t => (0 <= s - t <= delta)%Z).

Lemma falls_length delta ss ts : falls delta ss ts -> length ss = length ts.
Proof. induction 1; simpl; auto. Qed.

Lemma falls_top delta ss ts : falls delta ss ts -> ss <> [] -> (0 <= top ss - top ts <= delta)%Z.
Proof.
  induction 1 as [|s t ss ts H K IH]; intros N; [congruence|].
  inversion K; subst; [exact H|]. rewrite !top_cons. specialize (IH ltac:(discriminate)). lia.
Qed.

Lemma falls_nth delta ss ts : falls delta ss ts -> (0 <= delta)%Z -> forall j, (0 <= nth j ss 0 - nth j ts 0 <= delta)%Z.
Proof. intros H D. induction H as [|s t ss ts K _ IH]; intros [|j]; simpl; auto; lia. Qed.

Section Monotone.
  Variable rate : R.
  Hypothesis rate_pos : 0 < rate.

  (** A coin whose gap grows by at most z is at most exp(rate * z) times rarer. *)
  Lemma coin_moves x y z : (x <= y + z)%Z -> exp (rate * IZR x) <= exp (rate * IZR z) * exp (rate * IZR y).
  Proof.
    intros H. rewrite <- exp_plus. apply exp_mono. apply IZR_le in H. rewrite plus_IZR in H. nra.
  Qed.

  Lemma at_least_one z : (0 <= z)%Z -> 1 <= exp (rate * IZR z).
  Proof. intros H. rewrite <- exp_0. apply exp_mono. apply IZR_le in H. nra. Qed.

  Theorem permute_and_flip_monotone delta ss ts i : falls delta ss ts -> ss <> [] ->
    permute_and_flip rate ss i <= permute_and_flip rate ts i * exp (rate * IZR delta) /\
    permute_and_flip rate ts i <= permute_and_flip rate ss i * exp (rate * IZR delta).
  Proof.
    intros H N. pose proof (falls_length delta ss ts H) as L. pose proof (falls_top delta ss ts H N) as T.
    pose proof (falls_nth delta ss ts H ltac:(lia)) as J. set (k := (top ss - top ts)%Z) in *.
    replace (exp (rate * IZR delta)) with (exp (rate * IZR k) * exp (rate * IZR (delta - k)))
      by (rewrite <- exp_plus; f_equal; rewrite minus_IZR; ring).
    unfold permute_and_flip. rewrite <- L. split; rewrite Rmult_comm;
      [|rewrite (Rmult_comm (exp (rate * IZR k)))]; apply flip_private;
      auto using certain_nonneg, seq_length, acceptance_range; try (apply at_least_one; lia);
      intros j; apply coin_moves; specialize (J j); lia.
  Qed.
End Monotone.

(** The loss is attained: of two equal candidates one falls by 1, and exactly
    exp(rate) times less often it is chosen. *)
Example monotone_attained rate : 0 < rate ->
  permute_and_flip rate [0; 0]%Z 1 = permute_and_flip rate [0; -1]%Z 1 * exp (rate * 1).
Proof.
  intros _. assert (H : permute_and_flip rate [0; 0]%Z 1 = 1 / 2 /\ permute_and_flip rate [0; -1]%Z 1 = exp (- rate) / 2).
  { unfold permute_and_flip, acceptance. cbn - [INR exp]. unfold over. cbn - [INR exp].
    unfold certain. simpl. rewrite !Rmult_0_r, !exp_0, ?Rmult_1_r.
    replace (rate * -1) with (- rate) by ring. split; field. }
  destruct H as [-> ->]. unfold Rdiv. rewrite Rmult_1_r, Rmult_assoc, (Rmult_comm (/ 2)), <- Rmult_assoc, <- exp_plus.
  replace (- rate + rate) with 0 by ring. rewrite exp_0. reflexivity.
Qed.
