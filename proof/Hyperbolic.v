(** * Hyperbolic functions

    What the moments of private mechanisms need: tanh is concave where it is
    positive, cosh x is at most exp(x²/2), and [tanh_above], the rational
    number that [model/notions.py] uses in place of tanh, is never below it. *)

Require Import Reals Lra.
Open Scope R_scope.

(** From 0 on, what never falls is never below where it began. *)
Lemma rises (f f' : R -> R) x : 0 <= x -> (forall c, derivable_pt_lim f c (f' c)) ->
  (forall c, 0 <= c <= x -> 0 <= f' c) -> f 0 <= f x.
Proof.
  intros [Hx| <-] D P; [|lra]. destruct (MVT_cor2 f f' 0 x Hx (fun c _ => D c)) as (c & E & [H1 H2]).
  assert (0 <= f' c) by (apply P; lra). assert (0 <= f' c * (x - 0)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma cosh_pos x : 0 < cosh x.
Proof. unfold cosh. pose proof (exp_pos x). pose proof (exp_pos (- x)). lra. Qed.

Lemma sinh_0' : sinh 0 = 0.
Proof. unfold sinh. rewrite Ropp_0. lra. Qed.

Lemma cosh_0' : cosh 0 = 1.
Proof. unfold cosh. rewrite Ropp_0, exp_0. lra. Qed.

Lemma sinh_nonneg x : 0 <= x -> 0 <= sinh x.
Proof.
  intros H. rewrite <- sinh_0'. apply (rises sinh cosh x H derivable_pt_lim_sinh). intros c _. left. apply cosh_pos.
Qed.

Lemma cosh_mono x y : 0 <= x <= y -> cosh x <= cosh y.
Proof.
  intros [Hx Hy]. destruct Hy as [Hy| ->]; [|lra].
  destruct (MVT_cor2 cosh sinh x y Hy (fun c _ => derivable_pt_lim_cosh c)) as (c & E & [H1 H2]).
  assert (0 <= sinh c) by (apply sinh_nonneg; lra). assert (0 <= sinh c * (y - x)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma square_difference x : cosh x ^ 2 - sinh x ^ 2 = 1.
Proof.
  unfold cosh, sinh. replace 1 with (exp x * exp (- x)) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0). field.
Qed.

Lemma cosh_plus x y : cosh (x + y) = cosh x * cosh y + sinh x * sinh y.
Proof.
  unfold cosh, sinh. rewrite Ropp_plus_distr, !exp_plus. field.
Qed.

Lemma cosh_minus x y : cosh (x - y) = cosh x * cosh y - sinh x * sinh y.
Proof.
  unfold cosh, sinh, Rminus. rewrite Ropp_plus_distr, Ropp_involutive, !exp_plus. field.
Qed.

(** ** tanh *)

Lemma tanh_derivative x : derivable_pt_lim tanh x (/ cosh x ^ 2).
Proof.
  pose proof (cosh_pos x) as P. unfold tanh.
  pose proof (derivable_pt_lim_div sinh cosh x (cosh x) (sinh x) (derivable_pt_lim_sinh x) (derivable_pt_lim_cosh x)) as D.
  assert (N : cosh x <> 0) by lra. specialize (D N).
  replace (/ cosh x ^ 2) with ((cosh x * cosh x - sinh x * sinh x) / (cosh x)²); [exact D|].
  pose proof (square_difference x) as E. replace (cosh x * cosh x - sinh x * sinh x) with 1 by (simpl in E; lra).
  unfold Rsqr. simpl. field. exact N.
Qed.

Lemma tanh_zero : tanh 0 = 0.
Proof. unfold tanh. rewrite sinh_0', cosh_0'. lra. Qed.

Lemma tanh_nonneg x : 0 <= x -> 0 <= tanh x.
Proof.
  intros H. unfold tanh. apply Rmult_le_pos; [apply sinh_nonneg, H|left; apply Rinv_0_lt_compat, cosh_pos].
Qed.

Lemma tanh_below_one x : tanh x < 1.
Proof.
  pose proof (cosh_pos x). unfold tanh. apply (Rmult_lt_reg_r (cosh x)); auto. unfold Rdiv.
  rewrite Rmult_assoc, Rinv_l by lra. unfold sinh, cosh in *. pose proof (exp_pos (- x)). lra.
Qed.

Lemma tanh_mono x y : 0 <= x <= y -> tanh x <= tanh y.
Proof.
  intros [Hx [Hy| ->]]; [|lra].
  destruct (MVT_cor2 tanh (fun c => / cosh c ^ 2) x y Hy (fun c _ => tanh_derivative c)) as (c & E & _).
  assert (0 < / cosh c ^ 2) by (apply Rinv_0_lt_compat, pow_lt, cosh_pos).
  assert (0 <= / cosh c ^ 2 * (y - x)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** Concave, and 0 at 0. *)
Lemma tanh_concave t x : 0 <= t <= 1 -> 0 <= x -> t * tanh x <= tanh (t * x).
Proof.
  intros Ht Hx.
  assert (K : tanh (t * 0) - t * tanh 0 <= tanh (t * x) - t * tanh x).
  { apply (rises (fun x => tanh (t * x) - t * tanh x) (fun c => / cosh (t * c) ^ 2 * t - t * / cosh c ^ 2) x Hx).
    - intros c. apply derivable_pt_lim_minus.
      + apply (derivable_pt_lim_comp (fun x => t * x) tanh c t (/ cosh (t * c) ^ 2)).
        * pose proof (derivable_pt_lim_scal (fun x => x) t c 1 (derivable_pt_lim_id c)) as D. rewrite Rmult_1_r in D. exact D.
        * apply tanh_derivative.
      + apply derivable_pt_lim_scal, tanh_derivative.
    - intros c [Hc _]. replace (/ cosh (t * c) ^ 2 * t - t * / cosh c ^ 2) with (t * (/ cosh (t * c) ^ 2 - / cosh c ^ 2)) by ring.
      apply Rmult_le_pos; [lra|].
      assert (M : cosh (t * c) <= cosh c).
      { apply cosh_mono. split; [apply Rmult_le_pos; lra|]. rewrite <- (Rmult_1_l c) at 2. apply Rmult_le_compat_r; lra. }
      pose proof (cosh_pos (t * c)). pose proof (cosh_pos c).
      assert (cosh (t * c) ^ 2 <= cosh c ^ 2) by (apply pow_incr; lra).
      assert (/ cosh c ^ 2 <= / cosh (t * c) ^ 2); [|lra]. apply Rinv_le_contravar; [apply pow_lt; lra|assumption]. }
  rewrite Rmult_0_r, tanh_zero in K. lra.
Qed.

(** 1 + tanh z over 1 - tanh z is exp(2z). *)
Lemma tanh_exp z : (1 + tanh z) = (1 - tanh z) * exp (2 * z).
Proof.
  pose proof (cosh_pos z). unfold tanh. apply (Rmult_eq_reg_r (cosh z)); [|lra].
  replace ((1 + sinh z / cosh z) * cosh z) with (cosh z + sinh z) by (field; lra).
  replace ((1 - sinh z / cosh z) * exp (2 * z) * cosh z) with ((cosh z - sinh z) * exp (2 * z)) by (field; lra).
  unfold cosh, sinh. replace (2 * z) with (z + z) by ring. rewrite exp_plus.
  replace (((exp z + exp (- z)) / 2 - (exp z - exp (- z)) / 2) * (exp z * exp z)) with ((exp z * exp (- z)) * exp z) by field.
  rewrite <- exp_plus, Rplus_opp_r, exp_0. field.
Qed.

(** The step from one order to the next. *)
Lemma cosh_step x y : 0 <= x -> 0 <= y -> cosh (x + y) <= cosh (x - y) * exp (2 * (x * tanh y)).
Proof.
  intros Hx Hy. pose proof (cosh_pos x) as Px. pose proof (cosh_pos y) as Py.
  set (t := tanh y). assert (Ht : 0 <= t <= 1) by (unfold t; split; [apply tanh_nonneg, Hy|left; apply tanh_below_one]).
  pose proof (tanh_concave t x Ht Hx) as C. pose proof (tanh_exp (t * x)) as E.
  pose proof (tanh_below_one (t * x)) as B.
  assert (A : forall s, sinh s = tanh s * cosh s) by (intros s; pose proof (cosh_pos s); unfold tanh; field; lra).
  rewrite cosh_plus, cosh_minus, (A x), (A y). fold t.
  replace (cosh x * cosh y + tanh x * cosh x * (t * cosh y)) with (cosh x * cosh y * (1 + t * tanh x)) by ring.
  replace (cosh x * cosh y - tanh x * cosh x * (t * cosh y)) with (cosh x * cosh y * (1 - t * tanh x)) by ring.
  rewrite (Rmult_assoc (cosh x * cosh y)). apply Rmult_le_compat_l; [left; apply Rmult_lt_0_compat; assumption|].
  replace (2 * (x * t)) with (2 * (t * x)) by ring. set (X := exp (2 * (t * x))) in *.
  assert (0 < X) by apply exp_pos.
  assert ((1 - tanh (t * x)) * X <= (1 - t * tanh x) * X) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** ** A rational number above tanh *)

Lemma sinh_below x : 0 <= x -> sinh x <= x * cosh x.
Proof.
  intros H. assert (K : 0 * cosh 0 - sinh 0 <= x * cosh x - sinh x).
  { apply (rises (fun x => x * cosh x - sinh x) (fun c => c * sinh c) x H).
    - intros c. replace (c * sinh c) with (1 * cosh c + c * sinh c - cosh c) by ring.
      apply derivable_pt_lim_minus; [|apply derivable_pt_lim_sinh].
      apply (derivable_pt_lim_mult (fun x => x) cosh c 1 (sinh c)); [apply derivable_pt_lim_id|apply derivable_pt_lim_cosh].
    - intros c [Hc _]. apply Rmult_le_pos; [exact Hc|apply sinh_nonneg, Hc]. }
  rewrite sinh_0' in K. lra.
Qed.

Lemma square_derivative k c : derivable_pt_lim (fun x => k + x ^ 2) c (2 * c).
Proof.
  replace (2 * c) with (0 + INR 2 * c ^ pred 2) by (simpl; ring).
  apply (derivable_pt_lim_plus (fun _ => k) (fun x => x ^ 2)); [apply derivable_pt_lim_const|apply derivable_pt_lim_pow].
Qed.

Lemma second_below x : 0 <= x -> 3 * x * cosh x <= (3 + x ^ 2) * sinh x.
Proof.
  intros H. assert (K : (3 + 0 ^ 2) * sinh 0 - 3 * (0 * cosh 0) <= (3 + x ^ 2) * sinh x - 3 * (x * cosh x)).
  { apply (rises (fun x => (3 + x ^ 2) * sinh x - 3 * (x * cosh x)) (fun c => c * (c * cosh c - sinh c)) x H).
    - intros c. replace (c * (c * cosh c - sinh c)) with
        (2 * c * sinh c + (3 + c ^ 2) * cosh c - 3 * (1 * cosh c + c * sinh c)) by ring.
      apply derivable_pt_lim_minus.
      + apply (derivable_pt_lim_mult (fun x => 3 + x ^ 2) sinh); [apply square_derivative|apply derivable_pt_lim_sinh].
      + apply (derivable_pt_lim_scal (fun x => x * cosh x)).
        apply (derivable_pt_lim_mult (fun x => x) cosh); [apply derivable_pt_lim_id|apply derivable_pt_lim_cosh].
    - intros c [Hc _]. apply Rmult_le_pos; [exact Hc|]. pose proof (sinh_below c Hc). lra. }
  rewrite sinh_0' in K. lra.
Qed.

Lemma third_below x : 0 <= x -> (15 + 6 * x ^ 2) * sinh x <= x * (15 + x ^ 2) * cosh x.
Proof.
  intros H. assert (K : 0 * ((15 + 0 ^ 2) * cosh 0) - (15 * sinh 0 + 6 * (0 ^ 2 * sinh 0)) <=
    x * ((15 + x ^ 2) * cosh x) - (15 * sinh x + 6 * (x ^ 2 * sinh x))).
  { apply (rises (fun x => x * ((15 + x ^ 2) * cosh x) - (15 * sinh x + 6 * (x ^ 2 * sinh x)))
      (fun c => c * ((3 + c ^ 2) * sinh c - 3 * c * cosh c)) x H).
    - intros c. replace (c * ((3 + c ^ 2) * sinh c - 3 * c * cosh c)) with
        (1 * ((15 + c ^ 2) * cosh c) + c * (2 * c * cosh c + (15 + c ^ 2) * sinh c) -
          (15 * cosh c + 6 * (INR 2 * c ^ pred 2 * sinh c + c ^ 2 * cosh c))) by (simpl; ring).
      apply derivable_pt_lim_minus.
      + apply (derivable_pt_lim_mult (fun x => x) (fun x => (15 + x ^ 2) * cosh x)); [apply derivable_pt_lim_id|].
        apply (derivable_pt_lim_mult (fun x => 15 + x ^ 2) cosh); [apply square_derivative|apply derivable_pt_lim_cosh].
      + apply (derivable_pt_lim_plus (fun x => 15 * sinh x) (fun x => 6 * (x ^ 2 * sinh x))).
        * apply derivable_pt_lim_scal, derivable_pt_lim_sinh.
        * apply (derivable_pt_lim_scal (fun x => x ^ 2 * sinh x)).
          apply (derivable_pt_lim_mult (fun x => x ^ 2) sinh); [apply derivable_pt_lim_pow|apply derivable_pt_lim_sinh].
    - intros c [Hc _]. apply Rmult_le_pos; [exact Hc|]. pose proof (second_below c Hc). lra. }
  rewrite sinh_0' in K. lra.
Qed.

(** min(1, y (15 + y²) / (15 + 6 y²)). *)
Definition tanh_above (y : R) : R := Rmin 1 (y * (15 + y ^ 2) / (15 + 6 * y ^ 2)).

Theorem tanh_above_right y : 0 <= y -> tanh y <= tanh_above y.
Proof.
  intros H. apply Rmin_glb; [left; apply tanh_below_one|]. pose proof (third_below y H) as K. pose proof (cosh_pos y) as C.
  assert (Q : 0 < 15 + 6 * y ^ 2) by (pose proof (pow2_ge_0 y); lra).
  apply (Rmult_le_reg_r (15 + 6 * y ^ 2)); [exact Q|]. unfold Rdiv. rewrite (Rmult_assoc (y * _)), Rinv_l, Rmult_1_r by lra.
  apply (Rmult_le_reg_r (cosh y)); [exact C|]. unfold tanh. unfold Rdiv.
  replace (sinh y * / cosh y * (15 + 6 * y ^ 2) * cosh y) with ((15 + 6 * y ^ 2) * sinh y) by (field; lra). exact K.
Qed.

(** ** cosh x ≤ exp(x²/2) *)

Lemma cosh_below x : 0 <= x -> cosh x <= exp (x ^ 2 / 2).
Proof.
  intros H. assert (K : 1 - cosh 0 * exp (- (0 ^ 2 / 2)) <= 1 - cosh x * exp (- (x ^ 2 / 2))).
  { apply (rises (fun x => 1 - cosh x * exp (- (x ^ 2 / 2))) (fun c => exp (- (c ^ 2 / 2)) * (c * cosh c - sinh c)) x H).
    - intros c. replace (exp (- (c ^ 2 / 2)) * (c * cosh c - sinh c)) with
        (0 - (sinh c * exp (- (c ^ 2 / 2)) + cosh c * (exp (- (c ^ 2 / 2)) * - c))) by ring.
      apply derivable_pt_lim_minus; [apply derivable_pt_lim_const|].
      apply (derivable_pt_lim_mult cosh (fun x => exp (- (x ^ 2 / 2)))); [apply derivable_pt_lim_cosh|].
      apply (derivable_pt_lim_comp (fun x => - (x ^ 2 / 2)) exp); [|apply derivable_pt_lim_exp].
      apply (derivable_pt_lim_opp (fun x => x ^ 2 / 2)). replace c with (/ 2 * (2 * c)) at 2 by field.
      assert (E : forall x, x ^ 2 / 2 = / 2 * (0 + x ^ 2)) by (intros; field).
      apply (derivable_pt_lim_ext (fun x => / 2 * (0 + x ^ 2))); [intros; symmetry; apply E|].
      apply (derivable_pt_lim_scal (fun x => 0 + x ^ 2)), square_derivative.
    - intros c [Hc _]. apply Rmult_le_pos; [left; apply exp_pos|]. pose proof (sinh_below c Hc). lra. }
  rewrite cosh_0' in K. replace (- (0 ^ 2 / 2)) with 0 in K by (simpl; field). rewrite exp_0 in K.
  assert (L : cosh x * exp (- (x ^ 2 / 2)) <= 1) by lra.
  apply (Rmult_le_reg_r (exp (- (x ^ 2 / 2)))); [apply exp_pos|]. rewrite <- exp_plus, Rplus_opp_r, exp_0. exact L.
Qed.
