(** * Queries at ρ

    A mechanism at ρ answers a bag by chance so that, at distance D, its laws are
    close at ρ * D² in every integer order.  This file makes such mechanisms

    - [gaussian_sums]: a vector of sums with squared L2 sensitivity Δ₂ and discrete
      Gaussian noise, σ² = Δ₂/(2ρ); the sums themselves if Δ₂ = 0;
    - [chosen]: the exponential mechanism at η with η² ≤ 8ρ;
    - [weakened]: any mechanism that is private at ε, at ε = η/2;
    - [shares_at_rho]: several, each at an equal share of ρ,

    and gives every query of [Queries] one of them: [at_rho].  η is √(8ρ), rounded
    down in whatever way. *)

Require Import Reals Lra Lia List Arith ZArith Permutation.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Mechanisms Fpinq.Monotone Fpinq.Private Fpinq.Queries Fpinq.Closeness
  Fpinq.Hyperbolic Fpinq.Moments Fpinq.Gaussian Fpinq.Choosing.
Require Fpinq.System Fpinq.Instance.
Import (coercions) Fpinq.System.
Import ListNotations.
Open Scope R_scope.

Section AtRho.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  Record RhoMechanism (answer : Type) := {
    rho_mass : R -> table -> answer -> R;
    rho_distribution : forall e T, 0 < e -> distribution (rho_mass e T);
    rho_same : forall e T U v, distance T U = 0%nat -> rho_mass e T v = rho_mass e U v;
    rho_close : forall e T U a, 0 < e -> (0 < a)%nat ->
      close (Order a) (fun _ => e * INR (distance T U) ^ 2) (rho_mass e T) (rho_mass e U) }.

  Lemma loss_nonneg e n : 0 < e -> 0 <= e * INR n ^ 2.
  Proof. intros. apply Rmult_le_pos; [lra|apply pow2_ge_0]. Qed.

  (** ** Sums *)

  Section Sums.
    Variable coordinates : list (record -> Z).

    (** g = ρ/Δ₂ = 1/(2σ²).  At a ρ that is not positive nothing is asked. *)
    Definition gaussian_at (d : positive) (e : R) (T : table) (v : list Z) : R :=
      match Rlt_dec 0 (rate e d) with
      | left H => gaussians (rate e d) H (measure coordinates T) v
      | right _ => 0
      end.

    Definition noisy_at_rho (d : positive) (bounded : forall x, (squared coordinates x <= Z.pos d)%Z) : RhoMechanism (list Z).
    Proof.
      refine {| rho_mass := gaussian_at d |}.
      - intros e T He. unfold gaussian_at. destruct (Rlt_dec 0 (rate e d)) as [H|N]; [apply gaussians_distribution|].
        exfalso. apply N, rate_pos, He.
      - intros e T U v H. unfold gaussian_at. apply distance_zero in H. rewrite (measure_bag _ T U H). reflexivity.
      - intros e T U a He Ha. unfold gaussian_at. destruct (Rlt_dec 0 (rate e d)) as [H|N]; [|exfalso; apply N, rate_pos, He].
        apply (close_weaken (Order a) Ha (fun _ => rate e d * l2 (measure coordinates T) (measure coordinates U))).
        + apply gaussians_distribution.
        + apply gaussians_distribution.
        + intros _. pose proof (measure_l2 coordinates (Z.pos d) bounded T U) as K. pose proof (rate_delta e d) as E.
          replace (e * INR (distance T U) ^ 2) with (rate e d * (IZR (Z.pos d) * INR (distance T U) ^ 2)).
          * apply Rmult_le_compat_l; lra.
          * rewrite <- Rmult_assoc, E. reflexivity.
        + apply (gaussians_close _ _ a Ha). unfold measure. rewrite !map_length. reflexivity.
    Defined.

    Lemma contribution_squared x : (contribution coordinates x <= 0 -> squared coordinates x <= 0)%Z /\
      (squared coordinates x <= 0 -> contribution coordinates x <= 0)%Z /\ (0 <= squared coordinates x)%Z /\
      (squared coordinates x <= contribution coordinates x * contribution coordinates x)%Z.
    Proof.
      unfold contribution, squared. induction coordinates as [|h gs (I1 & I2 & I3 & I4)]; cbn [fold_right]; [lia|].
      assert (P : (0 <= fold_right (fun g n => Z.abs (g x) + n) 0 gs)%Z) by (clear; induction gs; simpl; lia).
      pose proof (Z.abs_square (h x)). set (c := fold_right _ _ gs) in *. set (s := fold_right _ _ gs) in *.
      repeat split; intros; try nia.
    Qed.

    Definition exact_at_rho (unmovable : forall x, (squared coordinates x <= 0)%Z) : RhoMechanism (list Z).
    Proof.
      assert (Same : forall T U, measure coordinates T = measure coordinates U).
      { apply unmoved. intros x. apply contribution_squared, unmovable. }
      refine {| rho_mass := fun _ T => certain (list_eq_dec Z.eq_dec) (measure coordinates T) |}.
      - intros. apply certain_distribution.
      - intros e T U v _. rewrite (Same T U). reflexivity.
      - intros e T U a He Ha. rewrite (Same T U).
        apply (close_weaken (Order a) Ha (fun _ => 0)); try apply certain_distribution.
        + intros _. apply loss_nonneg, He.
        + apply (close_same (Order a) Ha), certain_distribution.
    Defined.

    Definition gaussian_sums (d : Z) : (forall x, (squared coordinates x <= d)%Z) -> RhoMechanism (list Z) :=
      match d with
      | Z0 => exact_at_rho
      | Z.pos p => noisy_at_rho p
      | Z.neg p => fun H => exact_at_rho (fun x => Z.le_trans _ _ _ (H x) (Pos2Z.neg_is_nonpos p))
      end.
  End Sums.

  (** ** What runs at √(8ρ) *)

  Variable eta : R -> R.
  Hypothesis eta_pos : forall e, 0 < e -> 0 < eta e.
  Hypothesis eta_below : forall e, 0 < e -> eta e ^ 2 <= 8 * e.

  (** Scores whose differences one record keeps within a window of width w: the
      rate is 2η/w. *)
  Section Choices.
    Variables (scores : table -> list Z) (some_candidate : forall T, scores T <> [])
      (of_bags : forall T U, Permutation T U -> scores T = scores U) (first : Z) (w : positive).
    Hypothesis moves : forall r T, apart (Z.pos w) (scores (r :: T)) (scores T) /\ apart (Z.pos w) (scores T) (scores (r :: T)).

    Definition chosen_at (e : R) (T : table) (v : Z) : R :=
      match position first v with Some i => choose (2 * rate (eta e) w) (scores T) i | None => 0 end.

    Definition chosen : RhoMechanism Z.
    Proof.
      refine {| rho_mass := chosen_at |}; unfold chosen_at.
      - intros e T He. apply (distribution_rename _ (fun i => first + Z.of_nat i)%Z (position first)); [apply position_spec|].
        apply choose_distribution, some_candidate.
      - intros e T U v H. apply distance_zero in H. rewrite (of_bags T U H). reflexivity.
      - intros e T U a He Ha. set (r := 2 * rate (eta e) w).
        assert (Hr : 0 < r) by (unfold r; pose proof (rate_pos (eta e) w (eta_pos e He)); lra).
        pose proof (apart_at scores of_bags (Z.pos w) (Pos2Z.is_nonneg w) moves _ T U eq_refl) as W.
        pose proof (choose_close r Hr (Z.pos w * Z.of_nat (distance T U)) (scores T) (scores U) ltac:(lia)
          W (some_candidate T) a Ha) as C.
        pose proof (close_rename (Order a) Ha (fun i => first + Z.of_nat i)%Z (position first) _ _ _ (fun b i => proj1 (position_spec first b i)) C) as K.
        eapply (close_weaken (Order a) Ha); [..|exact K].
        + intros v. destruct (position first v); [|lra]. apply choose_distribution, some_candidate.
        + intros v. destruct (position first v); [|lra]. apply choose_distribution, some_candidate.
        + intros ?. cbv beta. rewrite mult_IZR, <- INR_IZR_INZ. unfold r.
          replace (2 * rate (eta e) w / 2 * (IZR (Z.pos w) * INR (distance T U))) with
            (rate (eta e) w * IZR (Z.pos w) * INR (distance T U)) by field.
          rewrite rate_delta, Rpow_mult_distr. pose proof (eta_below e He). pose proof (pow2_ge_0 (INR (distance T U))).
          replace (eta e ^ 2 * INR (distance T U) ^ 2 / 8) with (eta e ^ 2 / 8 * INR (distance T U) ^ 2) by field.
          apply Rmult_le_compat_r; lra.
    Defined.
  End Choices.

  (** At ε = η/2: ε tanh(ε/2) ≤ ε²/2 ≤ ρ. *)
  Lemma pure_at (q : Mechanism (list Z)) e T U v : 0 < e ->
    mass _ q e T v <= mass _ q e U v * exp (e * INR (distance T U)).
  Proof.
    intros He. apply (System.group_privacy Instance.bags (System.mass_private Instance.bags) q e v He (distance T U) T U eq_refl).
  Qed.

  Lemma pure_close (q : Mechanism (list Z)) e T U a : 0 < e -> (0 < a)%nat ->
    close (Order a) (fun _ => e * INR (distance T U) * tanh (e * INR (distance T U) / 2)) (mass _ q e T) (mass _ q e U).
  Proof.
    intros He Ha. apply (private_close a (list_eq_dec Z.eq_dec)); auto.
    - apply Rmult_le_pos; [lra|apply pos_INR].
    - apply mass_distribution, He.
    - apply mass_distribution, He.
    - intros v. apply pure_at, He.
    - intros v. rewrite (distance_sym T U). apply pure_at, He.
  Qed.

  Lemma tanh_below x : 0 <= x -> tanh x <= x.
  Proof.
    intros H. pose proof (cosh_pos x). pose proof (sinh_below x H). unfold tanh. apply (Rmult_le_reg_r (cosh x)); auto.
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  Qed.

  Definition weakened (q : Mechanism (list Z)) : RhoMechanism (list Z).
  Proof.
    assert (P : forall e, 0 < e -> 0 < eta e / 2) by (intros e He; pose proof (eta_pos e He); lra).
    refine {| rho_mass := fun e => mass _ q (eta e / 2) |}.
    - intros e T He. apply mass_distribution, P, He.
    - intros e T U v H. apply mass_same, H.
    - intros e T U a He Ha. pose proof (P e He) as Hh. pose proof (pos_INR (distance T U)) as Hn.
      apply (close_weaken (Order a) Ha (fun _ => eta e / 2 * INR (distance T U) * tanh (eta e / 2 * INR (distance T U) / 2))).
      + apply mass_distribution, Hh.
      + apply mass_distribution, Hh.
      + intros _. set (x := eta e / 2 * INR (distance T U)). assert (Hx : 0 <= x) by (apply Rmult_le_pos; lra).
        pose proof (tanh_below (x / 2) ltac:(lra)) as B.
        apply Rle_trans with (x * (x / 2)); [apply Rmult_le_compat_l; assumption|].
        replace (x * (x / 2)) with (eta e ^ 2 / 8 * INR (distance T U) ^ 2) by (unfold x; field).
        apply Rmult_le_compat_r; [apply pow2_ge_0|]. pose proof (eta_below e He). lra.
      + apply pure_close; assumption.
  Defined.

  (** ** Several, each at an equal share *)

  Definition product_at_rho (qs : list (RhoMechanism Z)) (e : R) (T : table) : list Z -> R :=
    independent (map (fun q => rho_mass _ q e T) qs).

  Lemma product_at_rho_distribution qs e T : 0 < e -> distribution (product_at_rho qs e T).
  Proof.
    intros He. apply (independent_distribution Z.eq_dec), Forall_forall. intros f Hf. apply in_map_iff in Hf.
    destruct Hf as (q & <- & _). apply rho_distribution, He.
  Qed.

  Lemma product_at_rho_close qs e T U a : 0 < e -> (0 < a)%nat ->
    close (Order a) (fun _ => INR (length qs) * (e * INR (distance T U) ^ 2)) (product_at_rho qs e T) (product_at_rho qs e U).
  Proof.
    intros He Ha. pose proof (independent_close (Order a) Z.eq_dec (fun _ => e * INR (distance T U) ^ 2)
      (fun q => rho_mass _ q e T) (fun q => rho_mass _ q e U) qs Ha) as K.
    assert (E : sum (fun _ => e * INR (distance T U) ^ 2) qs = INR (length qs) * (e * INR (distance T U) ^ 2)).
    { clear. induction qs as [|q qs IH]; [simpl; ring|]. change (length (q :: qs)) with (S (length qs)). rewrite S_INR.
      cbn [sum]. rewrite IH. ring. }
    rewrite E in K. apply K. intros q _. repeat split; try apply rho_distribution; auto using loss_nonneg.
    - apply (proj1 (rho_close _ q e T U a He Ha)).
    - apply (proj2 (rho_close _ q e T U a He Ha)).
  Qed.

  Definition shares_at_rho (qs : list (RhoMechanism Z)) : RhoMechanism (list Z).
  Proof.
    assert (P : forall e, 0 < e -> qs = [] \/ 0 < e / INR (length qs)).
    { intros e He. destruct qs as [|q qs']; [left; reflexivity|right]. apply Rdiv_lt_0_compat; auto. apply lt_0_INR. simpl. lia. }
    refine {| rho_mass := fun e T => product_at_rho qs (e / INR (length qs)) T |}.
    - intros e T He. destruct (P e He) as [->|Hs]; [|apply product_at_rho_distribution, Hs].
      apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - intros e T U vs H. revert vs. generalize (e / INR (length qs)) as share. intros share. clear P.
      unfold product_at_rho. induction qs as [|q qs' IH]; intros [|v vs]; cbn [map independent]; auto.
      rewrite (rho_same _ q share T U v H), IH. auto.
    - intros e T U a He Ha. destruct (P e He) as [->|Hs].
      + apply (close_weaken (Order a) Ha (fun _ => 0)).
        * intros []; unfold product_at_rho; simpl; lra.
        * intros []; unfold product_at_rho; simpl; lra.
        * intros _. apply loss_nonneg, He.
        * apply (close_ext (Order a) Ha (fun _ => 0) _ ended ended); try (intros []; reflexivity).
          apply (close_same (Order a) Ha), ended_distribution.
      + pose proof (product_at_rho_close qs _ T U a Hs Ha) as K. revert K. apply (close_ext (Order a) Ha); auto.
        intros _. field. intros Z. rewrite Z in Hs. unfold Rdiv in Hs. rewrite Rinv_0 in Hs. lra.
  Defined.

  (** One choice, answered by a vector of one number. *)
  Definition alone_at_rho (q : RhoMechanism Z) : RhoMechanism (list Z).
  Proof.
    set (one := fun v : list Z => match v with [x] => Some x | _ => None end).
    assert (E : forall v x, one v = Some x <-> v = [x]) by (intros [|x [|]] y; simpl; split; intros H; congruence).
    refine {| rho_mass := fun e T v => match one v with Some x => rho_mass _ q e T x | None => 0 end |}.
    - intros e T He. apply (distribution_rename _ (fun x => [x]) one E), rho_distribution, He.
    - intros e T U v H. destruct (one v); auto. apply rho_same, H.
    - intros e T U a He Ha. apply (close_rename (Order a) Ha (fun x => [x]) one _ _ _ (fun v x => proj1 (E v x))), rho_close; assumption.
  Defined.

  (** ** The queries *)

  Open Scope Z_scope.

  Definition squares_of {A} (gs : list (A -> Z)) (x : A) : Z := fold_right (fun g n => g x * g x + n) 0 gs.

  Lemma statistic_squared (c : Clamp (record := record)) gs d : 0 <= d ->
    (forall x, lower c <= x <= upper c -> squares_of gs x <= d) -> forall r, squared (statistic c gs) r <= d.
  Proof.
    intros D H r. unfold squared, statistic, on, squares_of in *. destruct (point c r) as [x|] eqn:E.
    - specialize (H x (point_range c r x E)). replace (fold_right _ 0 _) with (fold_right (fun g n => g x * g x + n) 0 gs); [exact H|].
      clear H. induction gs as [|g gs IH]; simpl; auto. rewrite E, IH. reflexivity.
    - clear H. replace (fold_right _ 0 _) with 0; [exact D|]. induction gs as [|g gs IH]; simpl; auto. rewrite E, <- IH. reflexivity.
  Qed.

  (** Where every coordinate is 0 or 1, the squares are the values. *)
  Lemma squared_of_bits coordinates (r : record) : (forall g, In g coordinates -> g r = 0 \/ g r = 1) ->
    squared coordinates r = contribution coordinates r.
  Proof.
    unfold squared, contribution. induction coordinates as [|g gs IH]; intros H; cbn [fold_right]; auto.
    rewrite IH by (intros h Hh; apply H; right; exact Hh). destruct (H g (or_introl eq_refl)) as [-> | ->]; reflexivity.
  Qed.

  (** What the squares beside the products can be. *)
  Fixpoint squares_squared (fs : list (Factor (record := record))) : Z :=
    match fs with
    | [] => 0
    | f :: fs => let s := Z.of_N (beside f) * (width (clamped_by f) * width (clamped_by f)) in s * s + squares_squared fs
    end.

  (** Δ₂ *)
  Definition squared_sensitivity (q : query (record := record)) : Z :=
    match q with
    | Tree _ _ height => Z.of_nat height
    | Lagrange c => width c * width c * (width c * width c)
    | CrossMoments fs w => Z.of_N w * reach fs * (Z.of_N w * reach fs) + squares_squared fs
    | _ => sensitivity q * sensitivity q
    end.

  Lemma lagrange_squared (c : Clamp (record := record)) r :
    squared (coordinates (Lagrange c)) r <= width c * width c * (width c * width c).
  Proof.
    apply statistic_squared; [pose proof (Z.square_nonneg (width c)); nia|]. intros x Hx.
    unfold squares_of, lagrange, width. cbn [fold_right]. set (t := x - lower c). set (s := upper c - x).
    replace (upper c - lower c) with (t + s) by (unfold t, s; lia). assert (0 <= t) by (unfold t; lia). assert (0 <= s) by (unfold s; lia).
    clearbody t s. replace (t + s - t) with s by lia. replace (t + s - 2 * t) with (s - t) by lia. replace (2 * t - (t + s)) with (t - s) by lia.
    assert (P : 0 <= t * s) by nia.
    assert (Q : (t + s) * (t + s) * ((t + s) * (t + s)) - (s * (s - t) * (s * (s - t)) + (4 * (t * s) * (4 * (t * s)) + (t * (t - s) * (t * (t - s)) + 0)))
      = 6 * (t * s) * ((t - s) * (t - s))) by ring.
    pose proof (Z.square_nonneg (t - s)). pose proof (Z.mul_nonneg_nonneg _ _ P H1). lia.
  Qed.

  Lemma squares_of_app {A} (gs hs : list (A -> Z)) x : squares_of (gs ++ hs) x = squares_of gs x + squares_of hs x.
  Proof. unfold squares_of. induction gs as [|g gs IH]; simpl; [reflexivity|]. rewrite IH. lia. Qed.

  (** By Cauchy: no more than the square of what there is in L1. *)
  Lemma squares_of_spread {A} (gs : list (A -> Z)) x : squares_of gs x <= spread gs x * spread gs x.
  Proof.
    assert (P : 0 <= spread gs x) by (unfold spread; clear; induction gs; simpl; lia).
    unfold squares_of, spread in *. induction gs as [|g gs IH]; cbn [fold_right] in *; [lia|].
    assert (0 <= fold_right (fun g n => Z.abs (g x) + n) 0 gs) by (clear; induction gs; simpl; lia).
    specialize (IH H). pose proof (Z.abs_square (g x)). nia.
  Qed.

  Lemma jointly_squared fs gs (r : record) : squared (map (jointly fs) gs) r =
    match all_points fs r with Some xs => squares_of gs xs | None => 0 end.
  Proof.
    unfold squared, squares_of. induction gs as [|g gs IH]; cbn [map fold_right]; [destruct (all_points fs r); reflexivity|].
    rewrite IH. unfold jointly. destruct (all_points fs r); reflexivity.
  Qed.

  Lemma squares_reached (fs : list (Factor (record := record))) r xs : all_points fs r = Some xs ->
    squares_of (squares fs) xs <= squares_squared fs.
  Proof.
    revert xs. induction fs as [|f fs IH]; intros xs; cbn [all_points]; [intros E; unfold squares_of; simpl; lia|].
    destruct (point (clamped_by f) r) as [x|] eqn:P; [|discriminate]. destruct (all_points fs r) as [ys|]; [|discriminate].
    intros E. injection E as <-. specialize (IH ys eq_refl). cbn [squares squares_squared]. rewrite squares_of_app.
    assert (T : squares_of (map (fun g xs => g (tl xs)) (squares fs)) (x :: ys) = squares_of (squares fs) ys).
    { unfold squares_of. clear. induction (squares fs) as [|g gs IH]; simpl; auto. rewrite IH. reflexivity. }
    rewrite T. pose proof (centred_bounded _ x (point_range _ _ _ P)) as C. apply Z.abs_le in C.
    destruct (beside f) as [|w]; unfold squares_of in *; cbn [fold_right hd]; [nia|].
    set (W := width (clamped_by f) * width (clamped_by f)) in *. set (z := centred (clamped_by f) x) in *.
    set (n := Z.of_N (N.pos w)). assert (0 <= n) by (unfold n; lia). clearbody n z W.
    assert (z * z <= W * W) by nia. assert (n * z * (n * z) <= n * W * (n * W)) by nia. lia.
  Qed.

  Lemma squares_squared_nonneg (fs : list (Factor (record := record))) : 0 <= squares_squared fs.
  Proof. induction fs as [|f fs IH]; cbn [squares_squared]; [lia|]. cbv zeta. nia. Qed.

  Lemma cross_squared fs w (r : record) : squared (coordinates (CrossMoments fs w)) r <= squared_sensitivity (CrossMoments fs w).
  Proof.
    cbn [coordinates squared_sensitivity]. rewrite jointly_squared. pose proof (squares_squared_nonneg fs).
    destruct (all_points fs r) as [xs|] eqn:E; [|nia].
    destruct (cross_reached fs r xs E) as [P _]. unfold cross. rewrite squares_of_app.
    pose proof (squares_of_spread (map (fun g xs => Z.of_N w * g xs) (products fs)) xs) as S. rewrite spread_weighted, P in S.
    pose proof (squares_reached fs r xs E). lia.
  Qed.

  Lemma by_contribution coordinates d (r : record) : 0 <= d -> contribution coordinates r <= d -> squared coordinates r <= d * d.
  Proof.
    intros D H. destruct (contribution_squared coordinates r) as (_ & _ & _ & K).
    pose proof (contribution_nonneg coordinates r). nia.
  Qed.

  Lemma bits_of_bins (c : Clamp (record := record)) gs r : (forall g, In g gs -> forall x, g x = 0 \/ g x = 1) ->
    forall g, In g (statistic c gs) -> g r = 0 \/ g r = 1.
  Proof.
    intros H g Hg. unfold statistic in Hg. apply in_map_iff in Hg. destruct Hg as (h & <- & Hh). unfold on.
    destruct (point c r); [apply H, Hh|left; reflexivity].
  Qed.

  Lemma tree_bits (c : Clamp (record := record)) b height g : In g (levels c b height) -> forall x, g x = 0 \/ g x = 1.
  Proof.
    intros H x. unfold levels in H. apply in_flat_map in H. destruct H as (l & _ & H). unfold bins in H.
    apply in_map_iff in H. destruct H as (n & <- & _). unfold indicator. destruct (_ =? n); auto.
  Qed.

  (** What a query at ρ releases of a table. *)
  Lemma squared_bounded q : match q with
    | Rank _ _ | Ranks _ _ | Brackets _ _ | Depth _ _ | Choice _ _ | Balance _ _ _ _ _ => True
    | _ => forall r, squared (coordinates q) r <= squared_sensitivity q end.
  Proof.
    destruct q; auto; intros r; try apply cross_squared; unfold squared_sensitivity; cbn [sensitivity].
    - apply by_contribution; [lia|]. cbn. lia.
    - apply by_contribution; [unfold magnitude; lia|apply sum_bounded].
    - apply by_contribution; [pose proof (bounds of); unfold width; lia|apply average_bounded].
    - apply by_contribution; [pose proof (bounds of); unfold width; nia|apply variance_bounded].
    - apply lagrange_squared.
    - apply by_contribution; [|apply summary_bounded]. pose proof (bounds of). unfold summary_width, width. destruct squares; nia.
    - apply by_contribution; [pose proof (bounds of); unfold width; lia|apply offset_bounded].
    - apply by_contribution; [lia|apply tally_bounded].
    - apply by_contribution; [lia|apply frequencies_bounded].
    - rewrite squared_of_bits; [apply tree_bounded|]. apply bits_of_bins, tree_bits.
  Qed.

  Lemma falls_apart scores d : (forall r T, falls (Z.pos d) (scores T) (scores (r :: T))) \/
      (forall r T, falls (Z.pos d) (scores (r :: T)) (scores T)) ->
    forall (r : record) T, apart (Z.pos d) (scores (r :: T)) (scores T) /\ apart (Z.pos d) (scores T) (scores (r :: T)).
  Proof. intros [H|H] r T; specialize (H r T); apply apart_falls in H; tauto. Qed.

  Lemma near_apart scores d : (forall r T, near (Z.pos d) (scores (r :: T)) (scores T)) ->
    forall (r : record) T, apart (Z.pos (2 * d)) (scores (r :: T)) (scores T) /\ apart (Z.pos (2 * d)) (scores T) (scores (r :: T)).
  Proof.
    intros H r T. specialize (H r T). change (Z.pos (2 * d)) with (2 * Z.pos d). split; apply apart_near; auto.
    apply near_sym, H.
  Qed.

  Lemma rank_one_way (c : Clamp (record := record)) f :
    (forall r T, falls (Z.pos (Z.to_pos (rank_sensitivity f))) (rank_scores c f T) (rank_scores c f (r :: T))).
  Proof. intros r T. rewrite Z2Pos.id by (pose proof (rank_sensitivity_pos f); lia). apply rank_falls. Qed.

  Lemma beside_one_way (c : Clamp (record := record)) f below above :
    (forall r T, falls (Z.pos (Z.to_pos (rank_sensitivity f))) (beside_scores c f below above T) (beside_scores c f below above (r :: T))).
  Proof. intros r T. rewrite Z2Pos.id by (pose proof (rank_sensitivity_pos f); lia). apply beside_falls. Qed.

  Definition rank_at_rho (c : Clamp (record := record)) (f : Fraction) : RhoMechanism Z :=
    chosen (rank_scores c f) (rank_scores_some c f) (rank_scores_bag c f) (lower c) (Z.to_pos (rank_sensitivity f))
      (falls_apart _ _ (or_introl (rank_one_way c f))).

  Definition beside_at_rho (c : Clamp (record := record)) (f : Fraction) below above : RhoMechanism Z :=
    chosen (beside_scores c f below above) (beside_scores_some c f below above) (beside_scores_bag c f below above) (lower c)
      (Z.to_pos (rank_sensitivity f)) (falls_apart _ _ (or_introl (beside_one_way c f below above))).

  Definition bracket_at_rho (c : Clamp (record := record)) (f : Fraction * (Z * Z)) : list (RhoMechanism Z) :=
    let '(f, (below, above)) := f in [beside_at_rho c f below 0; rank_at_rho c f; beside_at_rho c f 0 above].

  Definition choice_at_rho (c : Clamp (record := record)) (cs : list Clamp) : RhoMechanism Z :=
    let scores := candidate_scores (c :: cs) in
    let some := candidates_some c cs in
    let bag := measure_bag (map (fun c => on c (fun x => x)) (c :: cs)) in
    let step := choice_step (c :: cs) in
    match is_monotone (c :: cs) as m return is_monotone (c :: cs) = m -> RhoMechanism Z with
    | true => fun E => chosen scores some bag 0 step (falls_apart _ _ (choice_one_way (c :: cs) E))
    | false => fun _ => chosen scores some bag 0 (2 * step) (near_apart _ _ (choice_near (c :: cs)))
    end eq_refl.

  Definition at_rho (q : query (record := record)) : RhoMechanism (list Z) :=
    match q as q return (match q with
      | Rank _ _ | Ranks _ _ | Brackets _ _ | Depth _ _ | Choice _ _ | Balance _ _ _ _ _ => True
      | _ => forall r, squared (coordinates q) r <= squared_sensitivity q end) -> RhoMechanism (list Z) with
    | Rank c f => fun _ => alone_at_rho (rank_at_rho c f)
    | Ranks c fs => fun _ => shares_at_rho (map (rank_at_rho c) fs)
    | Brackets c fs => fun _ => shares_at_rho (flat_map (bracket_at_rho c) fs)
    | Depth c n => fun _ => alone_at_rho (chosen (depth_scores c n) (depth_scores_some c n) (depth_scores_bag c n) (lower c) 2
        (near_apart _ 1 (depth_near c n)))
    | Choice c cs => fun _ => alone_at_rho (choice_at_rho c cs)
    | Balance _ _ _ _ _ as q => fun _ => weakened (released q)
    | q => gaussian_sums (coordinates q) (squared_sensitivity q)
    end (squared_bounded q).

  (** ** The rates, spelled out *)

  Open Scope R_scope.

  (** Noise is added with g = ρ/Δ₂, that is, σ² = Δ₂/(2ρ). *)
  Lemma noise_at_rho q (d : positive) e (H : 0 < e / IZR (Z.pos d)) T v :
    match q with Rank _ _ | Ranks _ _ | Brackets _ _ | Depth _ _ | Choice _ _ | Balance _ _ _ _ _ => False
    | _ => squared_sensitivity q = Z.pos d end ->
    rho_mass _ (at_rho q) e T v = gaussians (e / IZR (Z.pos d)) H (measure (coordinates q) T) v.
  Proof.
    intros E. destruct q; try contradiction; unfold at_rho;
      match goal with |- context [gaussian_sums ?g ?s ?B] => generalize B end; cbv beta; rewrite E; intros B; simpl;
      unfold gaussian_at; unfold rate; destruct (Rlt_dec 0 (e / IZR (Z.pos d))) as [K|]; try contradiction;
      rewrite (Classical_Prop.proof_irrelevance _ K H); reflexivity.
  Qed.

  (** A candidate is chosen by exp(λ * score), λ = η/Δ if one more record moves
      all scores one way, else η/(2Δ). *)
  Lemma chosen_at_rho c cs e T i : rho_mass _ (at_rho (Choice c cs)) e T [Z.of_nat i] =
    choose (2 * (eta e / IZR (Z.max 1 (choice_sensitivity (c :: cs))) / (if is_monotone (c :: cs) then 1 else 2)))
      (candidate_scores (c :: cs) T) i.
  Proof.
    cbn [at_rho alone_at_rho rho_mass]. unfold choice_at_rho. generalize (choice_one_way (c :: cs)). generalize (choice_near (c :: cs)).
    intros N M. set (m := is_monotone (c :: cs)) in *. clearbody m.
    assert (P : 0 < IZR (Z.max 1 (choice_sensitivity (c :: cs)))) by (apply IZR_lt; lia).
    destruct m; cbn [rho_mass chosen]; unfold chosen_at; rewrite (proj2 (position_spec 0 _ i)) by lia; f_equal; unfold rate, choice_step.
    - rewrite Z2Pos.id by lia. field. lra.
    - change (Z.pos (2 * Z.to_pos (Z.max 1 (choice_sensitivity (c :: cs))))) with
        (2 * Z.pos (Z.to_pos (Z.max 1 (choice_sensitivity (c :: cs)))))%Z.
      rewrite Z2Pos.id, mult_IZR by lia. field. lra.
  Qed.

  Lemma rank_chosen_at_rho c f e T i : rho_mass _ (at_rho (Rank c f)) e T [(lower c + Z.of_nat i)%Z] =
    choose (2 * (eta e / IZR (rank_sensitivity f))) (rank_scores c f T) i.
  Proof.
    cbn [at_rho alone_at_rho rho_mass rank_at_rho chosen]. unfold chosen_at.
    rewrite (proj2 (position_spec (lower c) _ i) eq_refl). unfold rate.
    rewrite Z2Pos.id by (pose proof (rank_sensitivity_pos f); lia). reflexivity.
  Qed.
End AtRho.
