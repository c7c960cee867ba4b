(** * The balance of two parts

    A record adds x to one part and y to another, x + y at most Q.  What is
    released is j where j / F is about (above - below) / the larger of them:
    noise is added to what is divided, and what it is divided by is exact
    ([noise/quotient.py]).  Each part counts for no less than a floor, which is
    public; a side without one is told as a whole. *)

Require Import Reals Lra Lia Psatz List Arith ZArith Permutation.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Mechanisms Fpinq.Private Fpinq.Quotient.
Import ListNotations.

Open Scope Z_scope.

(** ** Boundaries *)

Section Boundaries.
  Variables fineness largest : positive.
  Notation F := (Z.pos fineness).
  Notation Q := (Z.pos largest).

  (** V is at most this exactly if i or more is released. *)
  Definition boundary (a b i : Z) : Z := Z.min F (F - i) * a - Z.min F (F + i) * b.

  Fixpoint boundaries (a b first : Z) (n : nat) : list Z :=
    match n with O => [] | S n => boundary a b first :: boundaries a b (first + 1) n end.

  (** One more record, or one less. *)
  Definition moved (a b a' b' : Z) : Prop :=
    (a <= a' /\ b <= b' /\ (a' - a) + (b' - b) <= Q) \/ (a' <= a /\ b' <= b /\ (a - a') + (b - b') <= Q).

  Lemma boundary_near a b a' b' i : - F <= i <= F -> moved a b a' b' ->
    Z.abs (boundary a b i - boundary a' b' i) <= F * Q.
  Proof.
    intros I M. unfold boundary.
    assert (P : 0 <= Z.min F (F - i) <= F) by lia. assert (S : 0 <= Z.min F (F + i) <= F) by lia.
    set (p := Z.min F (F - i)) in *. set (s := Z.min F (F + i)) in *.
    replace (p * a - s * b - (p * a' - s * b')) with (p * (a - a') - s * (b - b')) by ring.
    destruct M as [M|M]; apply Z.abs_le; nia.
  Qed.

  Lemma boundary_gap a b i : - F <= i < F -> boundary a b i - boundary a b (i + 1) = if 0 <=? i then a else b.
  Proof.
    intros I. unfold boundary. destruct (Z.leb_spec 0 i).
    - rewrite (Z.min_r F (F - i)), (Z.min_l F (F + i)), (Z.min_r F (F - (i + 1))), (Z.min_l F (F + (i + 1))) by lia. ring.
    - rewrite (Z.min_l F (F - i)), (Z.min_r F (F + i)), (Z.min_l F (F - (i + 1))), (Z.min_r F (F + (i + 1))) by lia. ring.
  Qed.

  Variable L : Z.
  Hypothesis L_pos : 0 < L.

  Open Scope R_scope.

  Lemma gap_alike a a' : (L <= a)%Z -> (L <= a')%Z -> (a' - a <= Q)%Z -> (a - a' <= Q)%Z -> IZR a <= IZR a' * (1 + IZR Q / IZR L).
  Proof.
    intros A A' D E. assert (HL : 0 < IZR L) by (apply IZR_lt, L_pos).
    assert (H1 : IZR L <= IZR a') by (apply IZR_le, A').
    assert (H2 : IZR a <= IZR a' + IZR Q) by (rewrite <- plus_IZR; apply IZR_le; lia).
    assert (HQ : 0 < IZR Q) by (apply IZR_lt; lia).
    assert (H3 : IZR Q <= IZR a' * (IZR Q / IZR L)); [|lra].
    replace (IZR a' * (IZR Q / IZR L)) with (IZR Q * (IZR a' / IZR L)) by (field; lra).
    assert (1 <= IZR a' / IZR L); [|nra].
    apply Rmult_le_reg_r with (IZR L); [exact HL|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  Qed.

  Lemma boundaries_alike a b a' b' n : forall first, (- F < first)%Z -> (first + Z.of_nat n <= F + 1)%Z -> moved a b a' b' ->
    (forall i, (first <= i)%Z -> (i + 1 < first + Z.of_nat n)%Z -> if (0 <=? i)%Z then (L <= a /\ L <= a')%Z else (L <= b /\ L <= b')%Z) ->
    alike (F * Q) (IZR Q / IZR L) (boundaries a b first n) (boundaries a' b' first n).
  Proof.
    induction n as [|n IH]; intros first L1 L2 M H; [constructor|].
    destruct n as [|n].
    - constructor. apply boundary_near; [lia|exact M].
    - assert (G : (if (0 <=? first)%Z then (L <= a /\ L <= a')%Z else (L <= b /\ L <= b')%Z)) by (apply H; lia).
      pose proof (boundary_gap a b first ltac:(lia)) as E. pose proof (boundary_gap a' b' first ltac:(lia)) as E'.
      change (boundaries a b first (S (S n))) with (boundary a b first :: boundary a b (first + 1) :: boundaries a b (first + 1 + 1) n).
      change (boundaries a' b' first (S (S n))) with (boundary a' b' first :: boundary a' b' (first + 1) :: boundaries a' b' (first + 1 + 1) n).
      constructor.
      + apply boundary_near; [lia|exact M].
      + destruct (0 <=? first)%Z; lia.
      + destruct (0 <=? first)%Z; lia.
      + rewrite E, E'. unfold moved in M. destruct (0 <=? first)%Z; apply gap_alike; lia.
      + apply (IH (first + 1)%Z); [lia|lia|exact M|]. intros i I1 I2. apply H; lia.
  Qed.
End Boundaries.

(** ** The mechanism *)

Open Scope R_scope.

Section Balance.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).
  Variables fineness largest : positive.
  Notation F := (Z.pos fineness).
  Notation Q := (Z.pos largest).
  Variables above below : record -> Z.
  Hypothesis parts : forall r, (0 <= above r /\ 0 <= below r /\ above r + below r <= Q)%Z.
  Variables least_above least_below : Z.

  (** The least integer that is not below 8 Q / e. *)
  Definition enough (e : R) : Z := (- Int_part (- (8 * IZR Q / e)))%Z.

  Lemma enough_spec e : 8 * IZR Q / e <= IZR (enough e).
  Proof. unfold enough. rewrite opp_IZR. pose proof (base_Int_part (- (8 * IZR Q / e))). lra. Qed.

  Lemma enough_pos e : 0 < e -> (0 < enough e)%Z.
  Proof.
    intros H. apply lt_IZR. pose proof (enough_spec e). assert (0 < IZR Q) by (apply IZR_lt; lia).
    assert (0 < 8 * IZR Q / e); [|lra]. apply Rmult_lt_0_compat; [lra|apply Rinv_0_lt_compat, H].
  Qed.

  Definition floor (e : R) (least : Z) : Z := if (0 <? least)%Z then Z.max least (enough e) else 0%Z.

  (** The least that is divided by. *)
  Definition divisor (e : R) : Z :=
    if (0 <? least_above)%Z
    then if (0 <? least_below)%Z then Z.min (floor e least_above) (floor e least_below) else floor e least_above
    else if (0 <? least_below)%Z then floor e least_below else enough e.

  Lemma divisor_enough e : (enough e <= divisor e)%Z.
  Proof. unfold divisor, floor. destruct (0 <? least_above)%Z, (0 <? least_below)%Z; lia. Qed.

  (** What the noise is drawn at: of e, what is left beside Q / divisor. *)
  Definition rest (e : R) : R := e - IZR Q / IZR (divisor e).

  Lemma rest_pos e : 0 < e -> 0 < rest e.
  Proof.
    intros H. unfold rest. pose proof (enough_spec e) as S. pose proof (enough_pos e H) as P.
    pose proof (divisor_enough e) as D. apply IZR_le in D. apply IZR_lt in P.
    assert (HQ : 0 < IZR Q) by (apply IZR_lt; lia).
    assert (K : 8 * IZR Q <= IZR (divisor e) * e).
    { apply Rmult_le_reg_r with (/ e); [apply Rinv_0_lt_compat, H|]. 
      replace (IZR (divisor e) * e * / e) with (IZR (divisor e)) by (field; lra). unfold Rdiv in S. lra. }
    assert (IZR Q / IZR (divisor e) < e); [|lra].
    apply Rmult_lt_reg_r with (IZR (divisor e)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. nra.
  Qed.

  Definition first : Z := if (0 <? least_below)%Z then (- F)%Z else 0%Z.
  Definition last : Z := if (0 <? least_above)%Z then F else 0%Z.

  Definition of_parts (e : R) (T : table) : list Z :=
    boundaries fineness (Z.max (floor e least_above) (sum_of above T)) (Z.max (floor e least_below) (sum_of below T))
      (first + 1) (Z.to_nat (last - first)).

  Lemma one_more r T e : moved largest (Z.max (floor e least_above) (sum_of above T)) (Z.max (floor e least_below) (sum_of below T))
    (Z.max (floor e least_above) (sum_of above (r :: T))) (Z.max (floor e least_below) (sum_of below (r :: T))).
  Proof. left. cbn [sum_of]. pose proof (parts r). lia. Qed.

  Lemma of_parts_alike e T U : 0 < e ->
    moved largest (Z.max (floor e least_above) (sum_of above T)) (Z.max (floor e least_below) (sum_of below T))
      (Z.max (floor e least_above) (sum_of above U)) (Z.max (floor e least_below) (sum_of below U)) ->
    alike (F * Q) (IZR Q / IZR (divisor e)) (of_parts e T) (of_parts e U).
  Proof.
    intros He M. pose proof (divisor_enough e). pose proof (enough_pos e He). unfold of_parts.
    apply boundaries_alike; [lia| | |exact M|].
    - unfold first. destruct (0 <? least_below)%Z; lia.
    - unfold first, last. destruct (0 <? least_below)%Z, (0 <? least_above)%Z; lia.
    - intros i I1 I2. unfold first, last, divisor in *. destruct (0 <? least_below)%Z, (0 <? least_above)%Z, (Z.leb_spec 0 i); lia.
  Qed.

  Lemma of_parts_same e T U : distance T U = 0%nat -> of_parts e T = of_parts e U.
  Proof.
    intros H. apply distance_zero in H. unfold of_parts.
    rewrite (sum_of_bag above T U H), (sum_of_bag below T U H). reflexivity.
  Qed.

  Lemma rate_of e : 0 < e -> 0 < rest e / IZR (F * Q).
  Proof. intros H. apply Rmult_lt_0_compat; [apply rest_pos, H|]. apply Rinv_0_lt_compat, IZR_lt. lia. Qed.

  Definition balance : Mechanism Z.
  Proof.
    refine {| mass := fun e T v => match position first v with
      Some j => crossing (rest e / IZR (F * Q)) (of_parts e T) j | None => 0 end |}.
    - intros e T He. apply (distribution_rename (crossing (rest e / IZR (F * Q)) (of_parts e T))
        (fun i => first + Z.of_nat i)%Z (position first)); [apply position_spec|].
      apply crossing_distribution; [apply rate_of, He|].
      assert (A : alike (F * Q) (IZR Q / IZR (divisor e)) (of_parts e T) (of_parts e T)).
      { apply of_parts_alike; [exact He|]. left. lia. }
      apply (alike_falling _ _ _ _ A).
    - intros e T U v H. rewrite (of_parts_same e T U H). reflexivity.
    - intros e T U v He H. destruct (position first v) as [j|]; [|lra].
      assert (A : alike (F * Q) (IZR Q / IZR (divisor e)) (of_parts e T) (of_parts e U)).
      { apply of_parts_alike; [exact He|]. destruct (neighbours T U H) as (r & [K|K]).
        - rewrite (sum_of_bag above _ _ K), (sum_of_bag below _ _ K). pose proof (one_more r U e) as M.
          unfold moved in *. tauto.
        - rewrite (sum_of_bag above _ _ K), (sum_of_bag below _ _ K). apply one_more. }
      assert (HD : 0 < IZR (divisor e)).
      { apply IZR_lt. pose proof (divisor_enough e). pose proof (enough_pos e He). lia. }
      assert (HQ : 0 < IZR Q) by (apply IZR_lt; lia).
      assert (HL : 0 <= IZR Q / IZR (divisor e)) by (left; apply Rmult_lt_0_compat; [exact HQ|apply Rinv_0_lt_compat, HD]).
      eapply Rle_trans; [apply (crossing_private _ (rate_of e He) (F * Q)%Z ltac:(lia) _ HL _ _ j A)|].
      apply Rmult_le_compat_l; [apply (crossing_distribution _ (rate_of e He)), (alike_falling _ _ _ _ A)|].
      replace (rest e / IZR (F * Q) * IZR (F * Q)) with (rest e) by (field; apply IZR_neq; lia).
      replace (exp e) with (exp (rest e) * exp (IZR Q / IZR (divisor e))).
      + apply Rmult_le_compat_l; [left; apply exp_pos|]. destruct HL as [HL|<-]; [left; apply exp_ineq1; lra|rewrite exp_0; lra].
      + rewrite <- exp_plus. f_equal. unfold rest. ring.
  Defined.

  (** What runs: noise of scale F Q / rest. *)
  Lemma balance_rate e T j : mass _ balance e T (first + Z.of_nat j)%Z = crossing (rest e / IZR (F * Q)) (of_parts e T) j.
  Proof. cbn - [crossing of_parts position first]. rewrite (proj2 (position_spec first _ j) eq_refl). reflexivity. Qed.
End Balance.
