(** * The queries

    [model/queries.py] in Coq: the primitive queries under their Python names,
    with the statistic and the sensitivity that each states, and the mechanism
    that [runtime/mechanisms.py] runs for it.  [released q] is a mechanism of
    [Private], so its privacy is part of it and nothing is left to assume.

    A value is a function of one record: the grid point before it is clamped,
    or [None] where it is null. *)

Require Import Reals Lia List Arith ZArith Permutation Bool.
Require Import Fpinq.Bags Fpinq.Mechanisms Fpinq.PermuteAndFlip Fpinq.Monotone Fpinq.Private.
Import ListNotations.
Open Scope Z_scope.

Section Queries.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  Record Clamp := { value : record -> option Z; lower : Z; upper : Z; bounds : lower <= upper }.
  Record Fraction := { numerator : Z; denominator : Z; between : 0 <= numerator <= denominator; whole : 0 < denominator }.

  Inductive query :=
    | Count
    | Sum (of : Clamp)
    | Average (of : Clamp)                         (* Moments of degree 1 *)
    | Variance (of : Clamp)                        (* Moments of degree 2 *)
    | Frequencies (of : Clamp)
    | Tree (of : Clamp) (branching : Z) (height : nat)
    | Rank (of : Clamp) (fraction : Fraction)
    | Ranks (of : Clamp) (fractions : list Fraction)
    | Choice (candidate : Clamp) (others : list Clamp).

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

  (** ** Choices

      Rank: with the fraction a/b, point x scores
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

  (** ** Sensitivity, and what runs *)

  Definition sensitivity (q : query) : Z :=
    match q with
    | Count | Frequencies _ => 1
    | Sum c => magnitude c
    | Average c => width c
    | Variance c => width c * width c
    | Tree _ _ height => Z.of_nat height
    | Rank _ f => rank_sensitivity f
    | Ranks _ fs => fold_right (fun f n => Z.max (rank_sensitivity f) n) 0 fs
    | Choice c cs => choice_sensitivity (c :: cs)
    end.

  (** The sums that noise is added to, or that a choice's scores are. *)
  Definition coordinates (q : query) : list (record -> Z) :=
    match q with
    | Count => [fun _ => 1]
    | Sum c => statistic c [fun x => x]
    | Average c => statistic c (bernstein1 c)
    | Variance c => statistic c (bernstein2 c)
    | Tree c b height => statistic c (levels c b height)
    | Frequencies c | Rank c _ | Ranks c _ => statistic c (bins (fun x => x) (points c))
    | Choice c cs => map (fun c => on c (fun x => x)) (c :: cs)
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
    | Frequencies c => sums (coordinates (Frequencies c)) 1 (frequencies_bounded c)
    | Tree c b height => sums (coordinates (Tree c b height)) (Z.of_nat height) (tree_bounded c b height)
    | Rank c f => alone (rank c f)
    | Ranks c fs => shares (map (rank c) fs)
    | Choice c cs => alone (choice c cs)
    end.

  Open Scope R_scope.

  (** Every query that runs is private, at the rate at which it runs. *)
  Theorem released_private q e T U v : 0 < e -> distance T U = 1%nat ->
    mass _ (released q) e T v <= mass _ (released q) e U v * exp e.
  Proof. apply mass_private. Qed.

  (** The rates, spelled out. *)

  Lemma noise_rate q (delta : positive) e T v :
    match q with Rank _ _ | Ranks _ _ | Choice _ _ => False | _ => sensitivity q = Z.pos delta end ->
    mass _ (released q) e T v = noise (e / IZR (sensitivity q)) (measure (coordinates q) T) v.
  Proof.
    intros H. destruct q; try contradiction; cbn [released sensitivity] in *; try reflexivity;
      match goal with |- context [sums ?g ?d ?B] => generalize B end; rewrite H; reflexivity.
  Qed.

  (** Δ = 0: the statistic itself. *)
  Lemma nothing_to_hide q e T v :
    match q with Rank _ _ | Ranks _ _ | Choice _ _ => False | _ => sensitivity q = 0%Z end ->
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
