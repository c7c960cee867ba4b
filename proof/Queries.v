(** * The queries

    [model/queries.py] in Coq: the primitive queries under their Python names,
    with the statistic and the sensitivity that each states, and the mechanism
    that [runtime/mechanisms.py] runs for it.  [released q] is a mechanism of
    [Private], so its privacy is part of it and nothing is left to assume.

    A value is a function of one record: the grid point before it is clamped,
    or [None] where it is null. *)

Require Import Reals Lia List Arith ZArith Permutation Bool.
Require Import Fpinq.Bags Fpinq.Mechanisms Fpinq.PermuteAndFlip Fpinq.Monotone Fpinq.Private
  Fpinq.Balance.
Import ListNotations.
Open Scope Z_scope.

Section Queries.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  Record Clamp := { value : record -> option Z; lower : Z; upper : Z; bounds : lower <= upper }.
  Record Fraction := { numerator : Z; denominator : Z; between : 0 <= numerator <= denominator; whole : 0 < denominator }.

  (** A clamp among several: the degree of its basis, 2 or 1, and what its square counts for beside the products. *)
  Record Factor := { clamped_by : Clamp; quadratic : bool; beside : N }.
  Record Values := { listed : list Z; different : NoDup listed }.

  Inductive query :=
    | Count
    | Sum (of : Clamp)
    | Average (of : Clamp)                         (* Moments of degree 1 *)
    | Variance (of : Clamp)                        (* Moments of degree 2 *)
    | Lagrange (of : Clamp)
    | Summary (of : Clamp) (squares : bool)        (* of degree 2 if so *)
    | Offset (of : Clamp)
    | CrossMoments (of : list Factor) (weight : N)
    | Tally (value : record -> option Z) (values : Values)
    | Frequencies (of : Clamp)
    | Tree (of : Clamp) (branching : Z) (height : nat)
    | Rank (of : Clamp) (fraction : Fraction)
    | Ranks (of : Clamp) (fractions : list Fraction)
    | Brackets (of : Clamp) (fractions : list (Fraction * (Z * Z)))
    | Depth (of : Clamp) (records : Z)
    | Choice (candidate : Clamp) (others : list Clamp)
    | Balance (of : Clamp) (about : option (Z * positive)) (fineness : positive) (least_above least_below : Z).

  (** ** Points of the grid *)

  Definition point (c : Clamp) (r : record) : option Z := option_map (clamp (lower c) (upper c)) (value c r).

  (** φ(r) from the point of r; a null contributes nothing. *)
  Definition on (c : Clamp) (g : Z -> Z) (r : record) : Z := match point c r with Some x => g x | None => 0 end.

  Definition width (c : Clamp) : Z := upper c - lower c.
  Definition magnitude (c : Clamp) : Z := Z.max (Z.abs (lower c)) (Z.abs (upper c)).
  Definition points (c : Clamp) : list Z := map (fun i => lower c + Z.of_nat i) (seq 0 (S (Z.to_nat (width c)))).

  Lemma point_range c r x : point c r = Some x -> lower c <= x <= upper c.
  Proof.
    unfold point. destruct (value c r); simpl; [|discriminate]. intros E. injection E as <-.
    pose proof (bounds c). unfold clamp. lia.
  Qed.

  Lemma on_range c g lo hi : lo <= 0 <= hi -> (forall x, lower c <= x <= upper c -> lo <= g x <= hi) ->
    forall r, lo <= on c g r <= hi.
  Proof. intros Z0 H r. unfold on. destruct (point c r) eqn:E; auto. apply H, (point_range c r), E. Qed.

  (** ** Noise *)

  Definition bernstein1 (c : Clamp) : list (Z -> Z) := [fun x => upper c - x; fun x => x - lower c].
  Definition bernstein2 (c : Clamp) : list (Z -> Z) :=
    [fun x => (upper c - x) * (upper c - x); fun x => 2 * ((x - lower c) * (upper c - x));
     fun x => (x - lower c) * (x - lower c)].

  (** Lagrange's basis at the bounds and the middle between them. *)
  Definition lagrange (c : Clamp) : list (Z -> Z) :=
    let t x := x - lower c in let w := width c in
    [fun x => (w - t x) * (w - 2 * t x); fun x => 4 * (t x * (w - t x)); fun x => t x * (2 * t x - w)].
  Definition lagrange_at (w t : Z) : Z := w * w + 2 * t * (w - 2 * t).
  Definition lagrange_sensitivity (c : Clamp) : Z :=
    Z.max (lagrange_at (width c) (width c / 4)) (lagrange_at (width c) (width c / 4 + 1)).

  Definition indicator (p : Z -> bool) (x : Z) : Z := if p x then 1 else 0.
  Definition bins (group : Z -> Z) (names : list Z) : list (Z -> Z) :=
    map (fun n => indicator (fun x => group x =? n)) names.

  (** A level of a tree: the points in groups of branching^level; a last group may be smaller. *)
  Definition groups (c : Clamp) (branching : Z) (level : nat) : list Z :=
    let size := branching ^ Z.of_nat level in map Z.of_nat (seq 0 (Z.to_nat (- (- (width c + 1) / size)))).
  Definition levels (c : Clamp) (branching : Z) (height : nat) : list (Z -> Z) :=
    flat_map (fun l => bins (fun x => (x - lower c) / branching ^ Z.of_nat l) (groups c branching l)) (seq 0 height).

  Definition statistic (c : Clamp) (gs : list (Z -> Z)) : list (record -> Z) := map (on c) gs.

  Lemma statistic_contribution c gs delta : 0 <= delta ->
    (forall x, lower c <= x <= upper c -> fold_right (fun g n => Z.abs (g x) + n) 0 gs <= delta) ->
    forall r, contribution (statistic c gs) r <= delta.
  Proof.
    intros D H r. unfold contribution, statistic, on. destruct (point c r) as [x|] eqn:E.
    - specialize (H x (point_range c r x E)). clear -H E.
      replace (fold_right _ 0 _) with (fold_right (fun g n => Z.abs (g x) + n) 0 gs); [exact H|].
      clear H. induction gs as [|g gs IH]; simpl; auto. rewrite E, IH. reflexivity.
    - clear H. assert (K : fold_right (fun g n => Z.abs (g r) + n) 0 (map (fun g r => match point c r with
        Some x => g x | None => 0 end) gs) = 0); [|lia].
      induction gs as [|g gs IH]; simpl; auto. rewrite E, IH. reflexivity.
  Qed.

  (** What a record without a value adds. *)
  Definition missing (c : Clamp) (w : Z) (r : record) : Z := match point c r with Some _ => 0 | None => w end.

  Definition summary_basis (c : Clamp) (squares : bool) : list (Z -> Z) := if squares then bernstein2 c else bernstein1 c.
  Definition summary_width (c : Clamp) (squares : bool) : Z := if squares then width c * width c else width c.

  Lemma contribution_app gs hs r : contribution (record := record) (gs ++ hs) r = contribution gs r + contribution hs r.
  Proof. unfold contribution. induction gs as [|g gs IH]; simpl; [reflexivity|]. rewrite IH. lia. Qed.

  (** One or the other: a value, or the lack of it. *)
  Lemma with_missing_contribution c gs w : 0 <= w ->
    (forall x, lower c <= x <= upper c -> fold_right (fun g n => Z.abs (g x) + n) 0 gs <= w) ->
    forall r, contribution (statistic c gs ++ [missing c w]) r <= w.
  Proof.
    intros D H r. rewrite contribution_app. unfold missing, contribution at 2. cbn [fold_right].
    destruct (point c r) as [x|] eqn:E.
    - pose proof (statistic_contribution c gs w D H r). lia.
    - pose proof (statistic_contribution c gs 0 (Z.le_refl 0)) as K.
      assert (Z0 : contribution (statistic c gs) r = 0).
      { unfold contribution, statistic, on. clear K H. induction gs as [|g gs IH]; simpl; auto. rewrite E, IH. reflexivity. }
      rewrite Z0. lia.
  Qed.

  (** The bins are different, so a point is in one of them at most. *)
  Lemma bins_contribution group names x : NoDup names ->
    0 <= fold_right (fun g n => Z.abs (g x) + n) 0 (bins group names) <= 1 /\
    (~ In (group x) names -> fold_right (fun g n => Z.abs (g x) + n) 0 (bins group names) = 0).
  Proof.
    induction 1 as [|n names Hn N IH]; simpl; [lia|]. change (indicator (fun y => group y =? n) x) with (if group x =? n then 1 else 0).
    destruct (Z.eqb_spec (group x) n) as [E|E].
    - rewrite E in IH. destruct IH as [IH1 IH2]. specialize (IH2 Hn). split; [lia|]. intros H. exfalso. apply H. auto.
    - split; [lia|]. intros H. destruct IH as [_ IH]. rewrite IH; [reflexivity|tauto].
  Qed.

  Lemma points_nodup c : NoDup (points c).
  Proof. apply FinFun.Injective_map_NoDup; [intros x y; lia|apply seq_NoDup]. Qed.

  Lemma levels_contribution c b height x :
    fold_right (fun g n => Z.abs (g x) + n) 0 (levels c b height) <= Z.of_nat height.
  Proof.
    unfold levels. rewrite <- (seq_length height 0) at 2. induction (seq 0 height) as [|l ls IH]; [simpl; lia|].
    cbn [flat_map length]. rewrite fold_right_app.
    assert (A : forall gs n, fold_right (fun (g : Z -> Z) n => Z.abs (g x) + n) n gs =
      fold_right (fun g n => Z.abs (g x) + n) 0 gs + n) by (induction gs; intros; simpl; [lia|rewrite IHgs; lia]).
    rewrite A. pose proof (bins_contribution (fun x => (x - lower c) / b ^ Z.of_nat l) (groups c b l) x) as K.
    destruct K as [K _]; [|lia]. apply FinFun.Injective_map_NoDup; [intros i j; lia|apply seq_NoDup].
  Qed.

  (** ** Products of several clamps

      A record has points where all of its values are there. *)

  Fixpoint all_points (fs : list Factor) (r : record) : option (list Z) :=
    match fs with
    | [] => Some []
    | f :: fs => match point (clamped_by f) r, all_points fs r with Some x, Some xs => Some (x :: xs) | _, _ => None end
    end.
  Definition jointly (fs : list Factor) (g : list Z -> Z) (r : record) : Z :=
    match all_points fs r with Some xs => g xs | None => 0 end.

  Definition basis (f : Factor) : list (Z -> Z) := (if quadratic f then bernstein2 else bernstein1) (clamped_by f).
  Definition basis_sum (f : Factor) : Z :=
    if quadratic f then width (clamped_by f) * width (clamped_by f) else width (clamped_by f).

  Definition times (g : Z -> Z) (h : list Z -> Z) (xs : list Z) : Z := g (hd 0 xs) * h (tl xs).
  Fixpoint products (fs : list Factor) : list (list Z -> Z) :=
    match fs with [] => [fun _ => 1] | f :: fs => flat_map (fun g => map (times g) (products fs)) (basis f) end.
  Fixpoint reach (fs : list Factor) : Z := match fs with [] => 1 | f :: fs => basis_sum f * reach fs end.

  Definition centred (c : Clamp) (x : Z) : Z :=
    2 * ((2 * (x - lower c) - width c) * (2 * (x - lower c) - width c)) - width c * width c.
  Fixpoint squares (fs : list Factor) : list (list Z -> Z) :=
    match fs with
    | [] => []
    | f :: fs => (match beside f with N0 => [] | w => [fun xs => Z.of_N w * centred (clamped_by f) (hd 0 xs)] end)
        ++ map (fun g xs => g (tl xs)) (squares fs)
    end.
  Fixpoint squares_reach (fs : list Factor) : Z :=
    match fs with
    | [] => 0
    | f :: fs => Z.of_N (beside f) * (width (clamped_by f) * width (clamped_by f)) + squares_reach fs
    end.

  Definition cross (fs : list Factor) (weight : N) : list (list Z -> Z) :=
    map (fun g xs => Z.of_N weight * g xs) (products fs) ++ squares fs.
  Definition cross_sensitivity (fs : list Factor) (weight : N) : Z := Z.of_N weight * reach fs + squares_reach fs.

  (** Σ |g x|. *)
  Definition spread {A} (gs : list (A -> Z)) (x : A) : Z := fold_right (fun g n => Z.abs (g x) + n) 0 gs.

  Lemma spread_app {A} (gs hs : list (A -> Z)) x : spread (gs ++ hs) x = spread gs x + spread hs x.
  Proof. induction gs as [|g gs IH]; simpl; [reflexivity|]. unfold spread in *. simpl. rewrite IH. lia. Qed.

  Lemma spread_times g hs x xs : spread (map (times g) hs) (x :: xs) = Z.abs (g x) * spread hs xs.
  Proof.
    induction hs as [|h hs IH]; [simpl; lia|]. unfold spread in *. cbn [map fold_right]. rewrite IH.
    unfold times. cbn [hd tl]. rewrite Z.abs_mul. lia.
  Qed.

  Lemma spread_products f hs x xs :
    spread (flat_map (fun g => map (times g) hs) (basis f)) (x :: xs) = spread (basis f) x * spread hs xs.
  Proof.
    induction (basis f) as [|g gs IH]; [simpl; lia|]. cbn [flat_map]. rewrite spread_app, IH, spread_times.
    unfold spread. cbn [fold_right]. lia.
  Qed.

  (** A basis sums to Wᵈ, whatever the value is. *)
  Lemma spread_basis f x : lower (clamped_by f) <= x <= upper (clamped_by f) -> spread (basis f) x = basis_sum f.
  Proof.
    intros H. unfold basis, basis_sum, spread. destruct (quadratic f); unfold bernstein2, bernstein1, width; cbn [fold_right].
    - rewrite !Z.abs_eq by nia. ring.
    - lia.
  Qed.

  Lemma spread_tail gs x xs : spread (map (fun g (xs : list Z) => g (tl xs) : Z) gs) (x :: xs) = spread gs xs.
  Proof. induction gs as [|g gs IH]; unfold spread in *; simpl; [reflexivity|]. rewrite IH. reflexivity. Qed.

  Lemma spread_weighted w gs (xs : list Z) : spread (map (fun g xs => Z.of_N w * g xs) gs) xs = Z.of_N w * spread gs xs.
  Proof.
    induction gs as [|g gs IH]; unfold spread in *; cbn [map fold_right]; [lia|]. rewrite IH, Z.abs_mul, (Z.abs_eq (Z.of_N w)) by lia. lia.
  Qed.

  Lemma centred_bounded c x : lower c <= x <= upper c -> Z.abs (centred c x) <= width c * width c.
  Proof.
    intros H. unfold centred, width. set (t := x - lower c). set (w := upper c - lower c).
    assert (0 <= t <= w) by (subst t w; lia). clearbody t w.
    assert (0 <= t * (w - t)) by (apply Z.mul_nonneg_nonneg; lia).
    pose proof (Z.square_nonneg (2 * t - w)). apply Z.abs_le. split; nia.
  Qed.

  Lemma cross_reached fs r xs : all_points fs r = Some xs -> spread (products fs) xs = reach fs /\ spread (squares fs) xs <= squares_reach fs.
  Proof.
    revert xs. induction fs as [|f fs IH]; intros xs; cbn [all_points].
    - intros E. injection E as <-. split; [reflexivity|]. unfold spread. simpl. lia.
    - destruct (point (clamped_by f) r) as [x|] eqn:P; [|discriminate]. destruct (all_points fs r) as [ys|]; [|discriminate].
      intros E. injection E as <-. destruct (IH ys eq_refl) as [IH1 IH2]. pose proof (point_range _ _ _ P) as R. split.
      + cbn [products reach]. rewrite spread_products, IH1, (spread_basis f x R). reflexivity.
      + cbn [squares squares_reach]. rewrite spread_app, spread_tail.
        pose proof (centred_bounded _ x R) as C.
        destruct (beside f) as [|w]; unfold spread in *; cbn [fold_right hd]; [lia|].
        rewrite Z.abs_mul, (Z.abs_eq (Z.of_N (N.pos w))) by lia. nia.
  Qed.

  Lemma basis_sum_nonneg f : 0 <= basis_sum f.
  Proof. pose proof (bounds (clamped_by f)). unfold basis_sum, width. destruct (quadratic f); nia. Qed.

  Lemma cross_sensitivity_nonneg fs w : 0 <= cross_sensitivity fs w.
  Proof.
    assert (H : 0 <= reach fs /\ 0 <= squares_reach fs).
    - induction fs as [|f fs [IH1 IH2]]; cbn [reach squares_reach]; [lia|]. split.
      + apply Z.mul_nonneg_nonneg; [apply basis_sum_nonneg|exact IH1].
      + apply Z.add_nonneg_nonneg; [|exact IH2]. apply Z.mul_nonneg_nonneg; [lia|apply Z.square_nonneg].
    - unfold cross_sensitivity. apply Z.add_nonneg_nonneg; [|apply H]. apply Z.mul_nonneg_nonneg; [lia|apply H].
  Qed.

  Lemma jointly_contribution fs gs r : contribution (map (jointly fs) gs) r =
    match all_points fs r with Some xs => spread gs xs | None => 0 end.
  Proof.
    unfold contribution, spread. induction gs as [|g gs IH]; cbn [map fold_right]; [destruct (all_points fs r); reflexivity|].
    rewrite IH. unfold jointly. destruct (all_points fs r); reflexivity.
  Qed.

  (** ** Values

      They are different, so a record has one of them at most. *)

  Definition has (value : record -> option Z) (n : Z) (r : record) : Z :=
    match value r with Some x => if x =? n then 1 else 0 | None => 0 end.

  Lemma has_contribution value names r : NoDup names -> contribution (map (has value) names) r <= 1.
  Proof.
    intros N. unfold contribution. destruct (value r) as [x|] eqn:E.
    - pose proof (bins_contribution (fun x => x) names x N) as [K _]. unfold bins in K.
      replace (fold_right _ 0 (map (has value) names))
        with (fold_right (fun g n => Z.abs (g x) + n) 0 (map (fun n => indicator (fun x => x =? n)) names)); [lia|].
      clear K N. induction names as [|n names IH]; simpl; [reflexivity|]. rewrite IH. unfold has at 2. rewrite E. reflexivity.
    - clear N. replace (fold_right _ 0 (map (has value) names)) with 0; [lia|].
      induction names as [|n names IH]; simpl; [reflexivity|]. rewrite <- IH. unfold has. rewrite E. reflexivity.
  Qed.

  (** ** Choices

      Depth: point x scores -max(0, #below x - number, number - #upto x). *)

  Definition depth_score (c : Clamp) (number : Z) (x : Z) (T : table) : Z :=
    - Z.max 0 (Z.max (sum_of (on c (indicator (fun y => y <? x))) T - number)
                     (number - sum_of (on c (indicator (fun y => y <=? x))) T)).
  Definition depth_scores (c : Clamp) (number : Z) (T : table) : list Z :=
    map (fun x => depth_score c number x T) (points c).

  Lemma depth_near c number r T : near 1 (depth_scores c number (r :: T)) (depth_scores c number T).
  Proof.
    unfold depth_scores, near. induction (points c) as [|x xs IH]; simpl; constructor; auto.
    unfold depth_score. cbn [sum_of].
    assert (K : forall p, 0 <= on c (indicator p) r <= 1).
    { intros p. apply on_range; [lia|]. intros y _. unfold indicator. destruct (p y); lia. }
    pose proof (K (fun y => y <? x)). pose proof (K (fun y => y <=? x)). lia.
  Qed.

  (** Rank: with the fraction a/b, point x scores
      -max((b - a) * #below x, a * #above x). *)

  Definition rank_score (c : Clamp) (f : Fraction) (x : Z) (T : table) : Z :=
    - Z.max ((denominator f - numerator f) * sum_of (on c (indicator (fun y => y <? x))) T)
            (numerator f * sum_of (on c (indicator (fun y => x <? y))) T).
  Definition rank_scores (c : Clamp) (f : Fraction) (T : table) : list Z := map (fun x => rank_score c f x T) (points c).
  Definition rank_sensitivity (f : Fraction) : Z := Z.max (numerator f) (denominator f - numerator f).

  Lemma rank_sensitivity_pos f : 1 <= rank_sensitivity f.
  Proof. pose proof (between f). pose proof (whole f). unfold rank_sensitivity. lia. Qed.

  (** One more record is below x, at x or above x: it lowers the score of x, by
      at most max(a, b - a), or leaves it. *)
  Lemma rank_falls c f r T : falls (rank_sensitivity f) (rank_scores c f T) (rank_scores c f (r :: T)).
  Proof.
    unfold rank_scores. induction (points c) as [|x xs IH]; simpl; constructor; auto.
    unfold rank_score. cbn [sum_of]. pose proof (between f). unfold rank_sensitivity.
    assert (K : (on c (indicator (fun y => y <? x)) r = 0 \/ on c (indicator (fun y => y <? x)) r = 1) /\
      (on c (indicator (fun y => x <? y)) r = 0 \/ on c (indicator (fun y => x <? y)) r = 1) /\
      on c (indicator (fun y => y <? x)) r + on c (indicator (fun y => x <? y)) r <= 1).
    { unfold on. destruct (point c r) as [y|]; [|lia]. unfold indicator.
      destruct (Z.ltb_spec y x), (Z.ltb_spec x y); lia. }
    set (p := sum_of (on c (indicator (fun y => y <? x))) T). set (q := sum_of (on c (indicator (fun y => x <? y))) T).
    destruct K as ([->| ->] & [->| ->] & K); nia.
  Qed.

  (** Brackets: as if so many more records were at the lower bound, or at the
      upper one.  Those are the same on every table, so one more record moves the scores
      as it moves Rank's. *)

  Definition beside_score (c : Clamp) (f : Fraction) (below above : Z) (x : Z) (T : table) : Z :=
    - Z.max ((denominator f - numerator f) * ((if lower c <? x then below else 0) + sum_of (on c (indicator (fun y => y <? x))) T))
            (numerator f * ((if x <? upper c then above else 0) + sum_of (on c (indicator (fun y => x <? y))) T)).
  Definition beside_scores (c : Clamp) (f : Fraction) (below above : Z) (T : table) : list Z :=
    map (fun x => beside_score c f below above x T) (points c).

  Lemma beside_falls c f below above r T :
    falls (rank_sensitivity f) (beside_scores c f below above T) (beside_scores c f below above (r :: T)).
  Proof.
    unfold beside_scores. induction (points c) as [|x xs IH]; simpl; constructor; auto.
    unfold beside_score. cbn [sum_of]. pose proof (between f). unfold rank_sensitivity.
    assert (K : (on c (indicator (fun y => y <? x)) r = 0 \/ on c (indicator (fun y => y <? x)) r = 1) /\
      (on c (indicator (fun y => x <? y)) r = 0 \/ on c (indicator (fun y => x <? y)) r = 1) /\
      on c (indicator (fun y => y <? x)) r + on c (indicator (fun y => x <? y)) r <= 1).
    { unfold on. destruct (point c r) as [y|]; [|lia]. unfold indicator.
      destruct (Z.ltb_spec y x), (Z.ltb_spec x y); lia. }
    set (p := (if lower c <? x then below else 0) + sum_of (on c (indicator (fun y => y <? x))) T).
    set (q := (if x <? upper c then above else 0) + sum_of (on c (indicator (fun y => x <? y))) T).
    replace ((if lower c <? x then below else 0) + (on c (indicator (fun y => y <? x)) r + sum_of (on c (indicator (fun y => y <? x))) T))
      with (p + on c (indicator (fun y => y <? x)) r) by (unfold p; ring).
    replace ((if x <? upper c then above else 0) + (on c (indicator (fun y => x <? y)) r + sum_of (on c (indicator (fun y => x <? y))) T))
      with (q + on c (indicator (fun y => x <? y)) r) by (unfold q; ring).
    clearbody p q. destruct K as ([->| ->] & [->| ->] & K); nia.
  Qed.

  (** Choice: a candidate scores the sum of its clamped values. *)
  Definition candidate_scores (cs : list Clamp) (T : table) : list Z := measure (map (fun c => on c (fun x => x)) cs) T.
  Definition choice_sensitivity (cs : list Clamp) : Z := fold_right (fun c n => Z.max (magnitude c) n) 0 cs.
  Definition is_monotone (cs : list Clamp) : bool :=
    forallb (fun c => 0 <=? lower c) cs || forallb (fun c => upper c <=? 0) cs.

  Lemma magnitude_le cs c : In c cs -> magnitude c <= choice_sensitivity cs.
  Proof. induction cs as [|d cs IH]; simpl; intros []; subst; [lia|]. specialize (IH H). lia. Qed.

  Lemma scores_move (R : Z -> Z -> Prop) cs r T :
    (forall c, In c cs -> forall s, R (on c (fun x => x) r + s) s) ->
    Forall2 R (candidate_scores cs (r :: T)) (candidate_scores cs T).
  Proof.
    unfold candidate_scores, measure. induction cs as [|c cs IH]; intros H; simpl; constructor; auto.
    - apply H. left. reflexivity.
    - apply IH. intros d Hd. apply H. right. exact Hd.
  Qed.

  Lemma clamped c r : Z.min 0 (lower c) <= on c (fun x => x) r <= Z.max 0 (upper c).
  Proof. apply on_range; [lia|]. intros. lia. Qed.

  (** As in Python: one candidate at least counts as moving by 1. *)
  Definition choice_step (cs : list Clamp) : positive := Z.to_pos (Z.max 1 (choice_sensitivity cs)).

  Lemma choice_near cs r T : near (Z.pos (choice_step cs)) (candidate_scores cs (r :: T)) (candidate_scores cs T).
  Proof.
    apply (scores_move (fun s t => Z.abs (s - t) <= Z.pos (choice_step cs))). intros c Hc s.
    pose proof (magnitude_le cs c Hc) as M. unfold choice_step. rewrite Z2Pos.id by lia.
    pose proof (clamped c r). pose proof (bounds c). unfold magnitude in M. lia.
  Qed.

  Lemma choice_one_way cs : is_monotone cs = true ->
    (forall r T, falls (Z.pos (choice_step cs)) (candidate_scores cs T) (candidate_scores cs (r :: T))) \/
    (forall r T, falls (Z.pos (choice_step cs)) (candidate_scores cs (r :: T)) (candidate_scores cs T)).
  Proof.
    intros H. unfold choice_step. rewrite Z2Pos.id by lia. apply orb_prop in H.
    destruct H as [H|H]; [right|left]; intros r T.
    - apply scores_move. intros c Hc s. pose proof (proj1 (forallb_forall _ cs) H c Hc) as L. apply Z.leb_le in L.
      pose proof (clamped c r). pose proof (magnitude_le cs c Hc) as M. unfold magnitude in M. lia.
    - assert (K : Forall2 (fun s t => 0 <= t - s <= Z.max 1 (choice_sensitivity cs)) (candidate_scores cs (r :: T))
        (candidate_scores cs T)).
      { apply scores_move. intros c Hc s. pose proof (proj1 (forallb_forall _ cs) H c Hc) as L. apply Z.leb_le in L.
        pose proof (clamped c r). pose proof (magnitude_le cs c Hc) as M. unfold magnitude in M. lia. }
      unfold falls. induction K; constructor; auto.
  Qed.

  (** Balance: a record is x - lower, or the square of its distance from p/r in
      parts of a step; that much is above, and what it lacks to the largest below. *)

  Definition part_above (c : Clamp) (about : option (Z * positive)) (x : Z) : Z :=
    match about with None => x - lower c | Some (p, r) => (Z.pos r * x - p) * (Z.pos r * x - p) end.
  Definition largest_part (c : Clamp) (about : option (Z * positive)) : Z :=
    Z.max (part_above c about (lower c)) (part_above c about (upper c)).
  Definition part_below (c : Clamp) (about : option (Z * positive)) (x : Z) : Z :=
    largest_part c about - part_above c about x.

  (** As in Python, where the bounds of a balance are apart: it is never 0 there. *)
  Definition balance_step (c : Clamp) (about : option (Z * positive)) : positive := Z.to_pos (Z.max 1 (largest_part c about)).

  Lemma part_above_range c about x : lower c <= x <= upper c -> 0 <= part_above c about x <= largest_part c about.
  Proof.
    intros H. unfold largest_part, part_above. destruct about as [[p r]|]; [|lia].
    set (l := Z.pos r * lower c - p). set (u := Z.pos r * upper c - p). set (e := Z.pos r * x - p).
    assert (l <= e <= u) by (unfold l, e, u; nia). destruct (Z.le_gt_cases 0 e); nia.
  Qed.

  Lemma balance_parts c about r : 0 <= on c (part_above c about) r /\ 0 <= on c (part_below c about) r /\
    on c (part_above c about) r + on c (part_below c about) r <= Z.pos (balance_step c about).
  Proof.
    unfold balance_step. rewrite Z2Pos.id by lia. unfold on. destruct (point c r) as [x|] eqn:E; [|lia].
    pose proof (part_above_range c about x (point_range c r x E)). unfold part_below. lia.
  Qed.

  (** ** Sensitivity, and what runs *)

  Definition sensitivity (q : query) : Z :=
    match q with
    | Count | Frequencies _ => 1
    | Sum c => magnitude c
    | Average c => width c
    | Variance c => width c * width c
    | Lagrange c => lagrange_sensitivity c
    | Summary c squares => summary_width c squares
    | Offset c => width c
    | CrossMoments fs w => cross_sensitivity fs w
    | Tally _ _ | Depth _ _ => 1
    | Tree _ _ height => Z.of_nat height
    | Rank _ f => rank_sensitivity f
    | Ranks _ fs => fold_right (fun f n => Z.max (rank_sensitivity f) n) 0 fs
    | Brackets _ fs => fold_right (fun f n => Z.max (rank_sensitivity (fst f)) n) 0 fs
    | Choice c cs => choice_sensitivity (c :: cs)
    | Balance c about fineness _ _ => Z.pos fineness * largest_part c about
    end.

  (** The sums that noise is added to, or that a choice's scores are. *)
  Definition coordinates (q : query) : list (record -> Z) :=
    match q with
    | Count => [fun _ => 1]
    | Sum c => statistic c [fun x => x]
    | Average c => statistic c (bernstein1 c)
    | Variance c => statistic c (bernstein2 c)
    | Lagrange c => statistic c (lagrange c)
    | Summary c squares => statistic c (summary_basis c squares) ++ [missing c (summary_width c squares)]
    | Offset c => statistic c [fun x => 2 * x - lower c - upper c] ++ [missing c (width c)]
    | CrossMoments fs w => map (jointly fs) (cross fs w)
    | Tally value values => map (has value) (listed values)
    | Tree c b height => statistic c (levels c b height)
    | Frequencies c | Rank c _ | Ranks c _ | Brackets c _ | Depth c _ => statistic c (bins (fun x => x) (points c))
    | Choice c cs => map (fun c => on c (fun x => x)) (c :: cs)
    | Balance c about _ _ _ => statistic c [part_above c about; part_below c about]
    end.

  Lemma sum_bounded c r : contribution (coordinates (Sum c)) r <= magnitude c.
  Proof.
    apply statistic_contribution; [unfold magnitude; lia|]. intros x Hx. simpl. unfold magnitude. lia.
  Qed.

  Lemma average_bounded c r : contribution (coordinates (Average c)) r <= width c.
  Proof.
    pose proof (bounds c). apply statistic_contribution; [unfold width; lia|]. intros x Hx.
    unfold bernstein1, width. cbn [fold_right]. lia.
  Qed.

  Lemma variance_bounded c r : contribution (coordinates (Variance c)) r <= width c * width c.
  Proof.
    pose proof (bounds c). apply statistic_contribution; [unfold width; nia|]. intros x Hx.
    unfold bernstein2, width. cbn [fold_right]. rewrite !Z.abs_eq by nia. nia.
  Qed.

  (** The most is at a quarter of the width, or beside it. *)
  Lemma lagrange_most w t : 0 <= w -> lagrange_at w t <= Z.max (lagrange_at w (w / 4)) (lagrange_at w (w / 4 + 1)).
  Proof.
    intros Hw. unfold lagrange_at. pose proof (Z.div_mod w 4 ltac:(lia)) as E. pose proof (Z.mod_pos_bound w 4 ltac:(lia)) as M.
    set (m := w / 4) in *. set (r := w mod 4) in *. clearbody m r. destruct (Z.le_gt_cases t m) as [L|L].
    - apply Z.le_trans with (w * w + 2 * m * (w - 2 * m)); [|lia].
      assert (0 <= (m - t) * (2 * w - 4 * (m + t))) by (apply Z.mul_nonneg_nonneg; lia). lia.
    - apply Z.le_trans with (w * w + 2 * (m + 1) * (w - 2 * (m + 1))); [|lia].
      assert (0 <= (t - (m + 1)) * (4 * (m + 1 + t) - 2 * w)) by (apply Z.mul_nonneg_nonneg; lia). lia.
  Qed.

  Lemma lagrange_bounded c r : contribution (coordinates (Lagrange c)) r <= lagrange_sensitivity c.
  Proof.
    pose proof (bounds c) as B. assert (W : 0 <= width c) by (unfold width; lia).
    apply statistic_contribution.
    - unfold lagrange_sensitivity. pose proof (lagrange_most (width c) 0 W). unfold lagrange_at at 1 in H. nia.
    - intros x Hx. unfold lagrange_sensitivity, lagrange. cbn [fold_right]. set (w := width c) in *. set (t := x - lower c).
      assert (0 <= t <= w) by (unfold t, w, width; lia). clearbody t w.
      pose proof (lagrange_most w t W) as M1. pose proof (lagrange_most w (w - t) W) as M2. unfold lagrange_at in M1 at 1, M2 at 1.
      assert (0 <= t * (w - t)) by (apply Z.mul_nonneg_nonneg; lia).
      rewrite (Z.abs_eq (4 * (t * (w - t)))) by lia.
      destruct (Z.le_gt_cases (2 * t) w) as [L|L].
      + assert (0 <= (w - t) * (w - 2 * t)) by (apply Z.mul_nonneg_nonneg; lia).
        assert (0 <= t * (w - 2 * t)) by (apply Z.mul_nonneg_nonneg; lia).
        rewrite Z.abs_eq, Z.abs_neq by lia. lia.
      + assert (0 <= (w - t) * (2 * t - w)) by (apply Z.mul_nonneg_nonneg; lia).
        assert (0 <= t * (2 * t - w)) by (apply Z.mul_nonneg_nonneg; lia).
        rewrite Z.abs_neq, Z.abs_eq by lia. lia.
  Qed.

  Lemma summary_bounded c squares r : contribution (coordinates (Summary c squares)) r <= summary_width c squares.
  Proof.
    pose proof (bounds c). apply with_missing_contribution.
    - unfold summary_width, width. destruct squares; nia.
    - intros x Hx. unfold summary_basis, summary_width, bernstein2, bernstein1, width. destruct squares; cbn [fold_right]; [|lia].
      rewrite !Z.abs_eq by nia. nia.
  Qed.

  Lemma offset_bounded c r : contribution (coordinates (Offset c)) r <= width c.
  Proof.
    pose proof (bounds c). apply with_missing_contribution; [unfold width; lia|]. intros x Hx. unfold width. cbn [fold_right]. lia.
  Qed.

  Lemma cross_bounded fs w r : contribution (coordinates (CrossMoments fs w)) r <= cross_sensitivity fs w.
  Proof.
    cbn [coordinates]. rewrite jointly_contribution. destruct (all_points fs r) as [xs|] eqn:E; [|apply cross_sensitivity_nonneg].
    destruct (cross_reached fs r xs E) as [P S]. unfold cross. rewrite spread_app, spread_weighted, P.
    unfold cross_sensitivity. lia.
  Qed.

  Lemma tally_bounded value values r : contribution (coordinates (Tally value values)) r <= 1.
  Proof. apply has_contribution, different. Qed.

  Lemma frequencies_bounded c r : contribution (coordinates (Frequencies c)) r <= 1.
  Proof.
    apply statistic_contribution; [lia|]. intros x _. apply (bins_contribution (fun x => x)), points_nodup.
  Qed.

  Lemma tree_bounded c b height r : contribution (coordinates (Tree c b height)) r <= Z.of_nat height.
  Proof. apply statistic_contribution; [lia|]. intros x _. apply levels_contribution. Qed.

  Lemma points_some c : points c <> [].
  Proof. discriminate. Qed.

  Lemma rank_scores_some c f T : rank_scores c f T <> [].
  Proof. discriminate. Qed.

  Lemma rank_scores_bag c f T U : Permutation T U -> rank_scores c f T = rank_scores c f U.
  Proof.
    intros H. apply map_ext. intros x. unfold rank_score.
    rewrite (sum_of_bag _ T U H), (sum_of_bag (on c (indicator (fun y => x <? y))) T U H). reflexivity.
  Qed.

  Definition rank (c : Clamp) (f : Fraction) : Mechanism Z.
  Proof.
    refine (one_way (rank_scores c f) (rank_scores_some c f) (rank_scores_bag c f) (lower c)
      (Z.to_pos (rank_sensitivity f)) (or_introl _)).
    intros r T. rewrite Z2Pos.id by (pose proof (rank_sensitivity_pos f); lia). apply rank_falls.
  Defined.

  Lemma depth_scores_some c n T : depth_scores c n T <> [].
  Proof. discriminate. Qed.

  Lemma depth_scores_bag c n T U : Permutation T U -> depth_scores c n T = depth_scores c n U.
  Proof.
    intros H. apply map_ext. intros x. unfold depth_score.
    rewrite (sum_of_bag _ T U H), (sum_of_bag (on c (indicator (fun y => y <=? x))) T U H). reflexivity.
  Qed.

  Definition depth (c : Clamp) (number : Z) : Mechanism Z :=
    either_way (depth_scores c number) (depth_scores_some c number) (depth_scores_bag c number) (lower c) 1
      (depth_near c number).

  Lemma beside_scores_some c f below above T : beside_scores c f below above T <> [].
  Proof. discriminate. Qed.

  Lemma beside_scores_bag c f below above T U : Permutation T U -> beside_scores c f below above T = beside_scores c f below above U.
  Proof.
    intros H. apply map_ext. intros x. unfold beside_score.
    rewrite (sum_of_bag _ T U H), (sum_of_bag (on c (indicator (fun y => x <? y))) T U H). reflexivity.
  Qed.

  Definition rank_beside (c : Clamp) (f : Fraction) (below above : Z) : Mechanism Z.
  Proof.
    refine (one_way (beside_scores c f below above) (beside_scores_some c f below above) (beside_scores_bag c f below above)
      (lower c) (Z.to_pos (rank_sensitivity f)) (or_introl _)).
    intros r T. rewrite Z2Pos.id by (pose proof (rank_sensitivity_pos f); lia). apply beside_falls.
  Defined.

  (** The lower end, the point itself and the upper end. *)
  Definition bracket (c : Clamp) (f : Fraction * (Z * Z)) : list (Mechanism Z) :=
    let '(f, (below, above)) := f in [rank_beside c f below 0; rank c f; rank_beside c f 0 above].

  Lemma candidates_some c cs T : candidate_scores (c :: cs) T <> [].
  Proof. discriminate. Qed.

  Definition choice (c : Clamp) (cs : list Clamp) : Mechanism Z :=
    let scores := candidate_scores (c :: cs) in
    let some := candidates_some c cs in
    let bag := measure_bag (map (fun c => on c (fun x => x)) (c :: cs)) in
    let step := choice_step (c :: cs) in
    match is_monotone (c :: cs) as m return is_monotone (c :: cs) = m -> Mechanism Z with
    | true => fun E => one_way scores some bag 0 step (choice_one_way (c :: cs) E)
    | false => fun _ => either_way scores some bag 0 step (choice_near (c :: cs))
    end eq_refl.

  (** What a query releases of a table. *)
  Definition released (q : query) : Mechanism (list Z) :=
    match q with
    | Count => sums (coordinates Count) 1 (fun _ => Z.le_refl 1)
    | Sum c => sums (coordinates (Sum c)) (magnitude c) (sum_bounded c)
    | Average c => sums (coordinates (Average c)) (width c) (average_bounded c)
    | Variance c => sums (coordinates (Variance c)) (width c * width c) (variance_bounded c)
    | Lagrange c => sums (coordinates (Lagrange c)) (lagrange_sensitivity c) (lagrange_bounded c)
    | Summary c squares => sums (coordinates (Summary c squares)) (summary_width c squares) (summary_bounded c squares)
    | Offset c => sums (coordinates (Offset c)) (width c) (offset_bounded c)
    | CrossMoments fs w => sums (coordinates (CrossMoments fs w)) (cross_sensitivity fs w) (cross_bounded fs w)
    | Tally value values => sums (coordinates (Tally value values)) 1 (tally_bounded value values)
    | Frequencies c => sums (coordinates (Frequencies c)) 1 (frequencies_bounded c)
    | Tree c b height => sums (coordinates (Tree c b height)) (Z.of_nat height) (tree_bounded c b height)
    | Rank c f => alone (rank c f)
    | Ranks c fs => shares (map (rank c) fs)
    | Brackets c fs => shares (flat_map (bracket c) fs)
    | Depth c number => alone (depth c number)
    | Choice c cs => alone (choice c cs)
    | Balance c about fineness least_above least_below => alone (balance fineness (balance_step c about)
        (on c (part_above c about)) (on c (part_below c about)) (balance_parts c about) least_above least_below)
    end.

  Open Scope R_scope.

  (** Every query that runs is private, at the rate at which it runs. *)
  Theorem released_private q e T U v : 0 < e -> distance T U = 1%nat ->
    mass _ (released q) e T v <= mass _ (released q) e U v * exp e.
  Proof. apply mass_private. Qed.

  (** How many integers are released. *)
  Definition integers (q : query) : nat :=
    match q with
    | Rank _ _ | Depth _ _ | Choice _ _ | Balance _ _ _ _ _ => 1
    | Ranks _ fs => length fs
    | Brackets _ fs => length (flat_map (fun _ => [0; 1; 2]%nat) fs)
    | q => length (coordinates q)
    end.

  Lemma noise_length rate qs : forall vs, length vs <> length qs -> noise rate qs vs = 0.
  Proof.
    induction qs as [|q qs IH]; intros [|v vs] H; simpl in *; try congruence; auto. rewrite IH by congruence. ring.
  Qed.

  Lemma sums_length gs d B e T vs : length vs <> length gs -> mass _ (sums gs d B) e T vs = 0.
  Proof.
    intros H. destruct d; simpl; try (apply noise_length; unfold measure; rewrite map_length; exact H);
      unfold Probability.certain; destruct (list_eq_dec Z.eq_dec (measure gs T) vs) as [<-|]; auto;
      exfalso; apply H; unfold measure; apply map_length.
  Qed.

  Lemma product_length qs e T : forall vs, length vs <> length qs -> product (record := record) qs e T vs = 0.
  Proof.
    induction qs as [|q qs IH]; intros [|v vs] H; simpl in *; try congruence; auto. rewrite IH by congruence. ring.
  Qed.

  Lemma released_length q e T vs : length vs <> integers q -> mass _ (released q) e T vs = 0.
  Proof.
    destruct q; cbn [integers released]; intros H; try (apply sums_length; exact H);
      try (destruct vs as [|x [|]]; simpl in H |- *; [reflexivity|congruence|reflexivity]).
    - apply product_length. rewrite map_length. exact H.
    - apply product_length. intros E. apply H. rewrite E. clear. induction fractions as [|[f [b a]] fs IH]; simpl; auto.
  Qed.

  (** The rates, spelled out. *)

  Lemma noise_rate q (delta : positive) e T v :
    match q with Rank _ _ | Ranks _ _ | Brackets _ _ | Depth _ _ | Choice _ _ | Balance _ _ _ _ _ => False | _ => sensitivity q = Z.pos delta end ->
    mass _ (released q) e T v = noise (e / IZR (sensitivity q)) (measure (coordinates q) T) v.
  Proof.
    intros H. destruct q; try contradiction; cbn [released sensitivity] in *; try reflexivity;
      match goal with |- context [sums ?g ?d ?B] => generalize B end; rewrite H; reflexivity.
  Qed.

  (** Δ = 0: the statistic itself. *)
  Lemma nothing_to_hide q e T v :
    match q with Rank _ _ | Ranks _ _ | Brackets _ _ | Depth _ _ | Choice _ _ | Balance _ _ _ _ _ => False | _ => sensitivity q = 0%Z end ->
    mass _ (released q) e T v = Probability.certain (list_eq_dec Z.eq_dec) (measure (coordinates q) T) v.
  Proof.
    intros H. destruct q; try contradiction; cbn [released sensitivity] in *; try discriminate;
      match goal with |- context [sums ?g ?d ?B] => generalize B end; rewrite H; reflexivity.
  Qed.

  Lemma rank_rate c f e T i : mass _ (released (Rank c f)) e T [(lower c + Z.of_nat i)%Z] =
    permute_and_flip (e / IZR (rank_sensitivity f)) (rank_scores c f T) i.
  Proof.
    cbn - [permute_and_flip position rank_scores]. rewrite (proj2 (position_spec (lower c) _ i) eq_refl).
    unfold rate. rewrite Z2Pos.id by (pose proof (rank_sensitivity_pos f); lia). reflexivity.
  Qed.

  Lemma depth_rate c n e T i : mass _ (released (Depth c n)) e T [(lower c + Z.of_nat i)%Z] =
    permute_and_flip (e / 1 / 2) (depth_scores c n T) i.
  Proof.
    cbn - [permute_and_flip position depth_scores]. rewrite (proj2 (position_spec (lower c) _ i) eq_refl). reflexivity.
  Qed.

  Lemma choice_rate c cs e T i : mass _ (released (Choice c cs)) e T [Z.of_nat i] =
    permute_and_flip (e / IZR (Z.max 1 (choice_sensitivity (c :: cs))) / (if is_monotone (c :: cs) then 1 else 2))
      (candidate_scores (c :: cs) T) i.
  Proof.
    cbn [released]. unfold choice. generalize (choice_one_way (c :: cs)). generalize (choice_near (c :: cs)).
    intros N M. set (b := is_monotone (c :: cs)) in *. clearbody b.
    destruct b; cbn - [permute_and_flip position candidate_scores choice_sensitivity];
      rewrite (proj2 (position_spec 0 _ i)) by lia; unfold rate, choice_step; rewrite Z2Pos.id by lia; auto.
    f_equal. field. apply IZR_neq. lia.
  Qed.
End Queries.
