(** * Books, executable

    The rules of [Concentrated] on public state only, over exact rationals, and the
    proof that they agree with them step for step, as [Compute] does for [General].

    [books_session n roots budgets notions deltas commands] starts with tables
    0 .. roots-1 as the roots, each with its δ for keys, or none; n is how many
    units make 1, to which κ of what is
    asked at ε is rounded up in a book in ρ.  A query has an ε or ρ, and a δ for
    each unit of distance, 0 for most.  It prints one record per command,
    separated by "; ":

<<
      verdict | C=c,c,… M=m,m,… | C=… M=…
>>

    first the pure roots' book, then that of each root, empty where it is pure,
    and that of each root in δ, empty where it has none.
    Counters are of all sources in order, in a root's own book of it and of parts;
    other roots are printed there as 0.  [show_kappa] prints one κ. *)

Require Import QArith Qreals Qround Reals Lra Lia List Arith ZArith String Bool.
Require Import Fpinq.Bags Fpinq.Plans Fpinq.Sources Fpinq.Scale Fpinq.Closeness Fpinq.Hyperbolic Fpinq.Compute.
Require Fpinq.Mechanisms Fpinq.Private Fpinq.System Fpinq.General Fpinq.Instance Fpinq.Books Fpinq.Discovery Fpinq.Concentrated.
Import ListNotations.
Open Scope Q_scope.

(** ** The algorithm *)

Inductive amount := Epsilon (e : Q) | Rho (e : Q).
Definition number (a : amount) : Q := match a with Epsilon e | Rho e => e end.

Definition tanh_above_q (y : Q) : Q :=
  let z := y * (15 + y * y) / (15 + 6 * (y * y)) in if Qle_bool 1 z then 1 else z.

(** Up to whole units, of which there are n in 1. *)
Definition up_q (n : positive) (x : Q) : Q := Qceiling (x * inject_Z (Z.pos n)) # n.

Definition kappa_q (n : positive) (k : notion) (a : amount) (s : Q) : option Q :=
  match k, a with
  | Pure, Epsilon e => Some e
  | Pure, Rho _ => None
  | Concentrated, Epsilon e => Some (up_q n (e * tanh_above_q (e * s * (1 # 2))))
  | Concentrated, Rho e => Some (e * s)
  end.

Section Rules.
  Variables (n : positive) (roots : nat) (budget : vector_q) (notions : list notion) (deltas : list (option Q)).

  Definition notion_q (x : nat) : notion := nth x notions Pure.
  Definition has_keys_q (x : nat) : bool := match nth x deltas None with Some _ => true | None => false end.
  Definition keys_budget_q : vector_q := map (fun d => match d with Some d => d | None => 0 end) deltas.
  Definition kind_q (b : nat) : Books.purpose := Concentrated.kind roots b.
  Definition own_q (b x : nat) : bool := Books.own (Concentrated.book_of notion_q) (Concentrated.keys_of roots has_keys_q) b x.
  Definition books_of_q (x : nat) : list nat := Books.books_of (Concentrated.book_of notion_q) (Concentrated.keys_of roots has_keys_q) x.
  Definition budgets_q (b : nat) : vector_q := match kind_q b with Books.Loss _ => budget | Books.Keys => keys_budget_q end.
  Definition last_book : nat := roots + roots.

  Definition reach_q (b : nat) (A : accounts_q) (v : vector_q) : Q :=
    largest_q (map (fun x => if own_q b x then price_q (fresh_q A) v 1 x else 0) (seq 0 roots)) 0 roots 0.

  Definition rate_q (b : nat) (A : accounts_q) (v : vector_q) (a : amount) (d : Q) : option Q :=
    let r := reach_q b A v in
    if Qeq_bool r 0 then Some 0 else match kind_q b with Books.Loss k => kappa_q n k a r | Books.Keys => Some d end.

  Record books_q := { tables_q : nat -> vector_q; all_books : list accounts_q }.

  Definition book_q (s : books_q) (b : nat) : accounts_q := nth b (all_books s) (opening_q roots).

  Definition rate_or_0_q (s : books_q) (b : nat) (v : vector_q) (a : amount) (d : Q) : Q :=
    match rate_q b (book_q s b) v a d with Some k => k | None => 0 end.

  Definition may_ask_q (s : books_q) (v : vector_q) (a : amount) (d : Q) : bool :=
    forallb (fun x => let b := Concentrated.book_of notion_q x in
      (match rate_q b (book_q s b) v a d with Some _ => true | None => false end &&
       (has_keys_q x || Qeq_bool d 0 || Qeq_bool (price_q (fresh_q (book_q s b)) v 1 x) 0))%bool) (seq 0 roots).

  Definition charged_q (s : books_q) (v : vector_q) (a : amount) (d : Q) : list accounts_q :=
    map (fun b => charge_q (book_q s b) v (rate_or_0_q s b v a d)) (seq 0 (S last_book)).

  Definition paid_q (books : list accounts_q) (x : nat) : Q :=
    entry (counters_q (nth (Concentrated.book_of notion_q x) books (opening_q roots))) x.

  Definition within_q (books : list accounts_q) : bool :=
    forallb (fun x => forallb (fun b => Qle_bool (entry (counters_q (nth b books (opening_q roots))) x) (entry (budgets_q b) x)) (books_of_q x))
      (seq 0 roots).

  Inductive command :=
    | Assign_ (t : nat) (s : shape) (ts : list nat)
    | Partition_ (t k dest : nat)
    | Query_ (t : nat) (a : amount) (d : Q)
    | Price_ (t : nat) (a : amount) (d : Q)
    | Scale_ (t : nat)
    | Budget_.

  Definition step_books (s : books_q) (c : command) : verdict * books_q :=
    match c with
    | Assign_ t F ts =>
        match combine_q (sources_q (book_q s 0)) (stability F) (map (tables_q s) ts) with
        | Some v => (Tau_, {| tables_q := fun y => if Nat.eqb y t then v else tables_q s y; all_books := all_books s |})
        | None => (Refused_, s)
        end
    | Partition_ t k dest =>
        (Tau_, {| tables_q := fun y => if (Nat.leb dest y && Nat.ltb y (dest + k))%bool
                                       then unit_q (sources_q (book_q s 0) + (y - dest)) else tables_q s y;
                  all_books := map (fun b => divide_q (book_q s b) (tables_q s t) k) (seq 0 (S last_book)) |})
    | Query_ t a d =>
        if negb (Qle_bool (number a) 0) then
          if may_ask_q s (tables_q s t) a d then
            let books := charged_q s (tables_q s t) a d in
            if within_q books then (Measured_, {| tables_q := tables_q s; all_books := books |}) else (Bottom_, s)
          else (Refused_, s)
        else (Refused_, s)
    | Price_ t a d =>
        if negb (Qle_bool (number a) 0) then
          if may_ask_q s (tables_q s t) a d then
            (Prices_ (map (fun x => let b := Concentrated.book_of notion_q x in
              price_q (book_q s b) (tables_q s t) (rate_or_0_q s b (tables_q s t) a d) x) (seq 0 roots)), s)
          else (Refused_, s)
        else (Refused_, s)
    | Scale_ t => (Factor_ (scaling_factor_q roots (book_q s 0) (tables_q s t)), s)
    | Budget_ => (Left_ (map (fun x => Qred (entry budget x - paid_q (all_books s) x)) (seq 0 roots)), s)
    end.

  Definition start_books : books_q :=
    {| tables_q := fun t => if Nat.ltb t roots then unit_q t else []; all_books := repeat (opening_q roots) (S last_book) |}.
End Rules.

(** ** It agrees with [Concentrated] *)

Open Scope R_scope.

(** Rounding up, of a real number. *)
Definition up_to (n : positive) (x : R) : R := - IZR (Int_part (- (x * IZR (Z.pos n)))) / IZR (Z.pos n).

Lemma up_to_above n x : x <= up_to n x.
Proof.
  assert (P : 0 < IZR (Z.pos n)) by (apply IZR_lt; lia). unfold up_to.
  destruct (base_Int_part (- (x * IZR (Z.pos n)))) as [H _].
  apply (Rmult_le_reg_r (IZR (Z.pos n))); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

Lemma Q2R_Z z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R, inject_Z. simpl. lra. Qed.

Lemma up_agrees n x : up_to n (Q2R x) = Q2R (up_q n x).
Proof.
  unfold up_to, up_q. assert (P : 0 < IZR (Z.pos n)) by (apply IZR_lt; lia).
  assert (E : Int_part (- (Q2R x * IZR (Z.pos n))) = Qfloor (- (x * inject_Z (Z.pos n)))%Q).
  { pose proof (Qfloor_le (- (x * inject_Z (Z.pos n)))%Q) as L.
    pose proof (Qlt_floor (- (x * inject_Z (Z.pos n)))%Q) as U. apply Qle_Rle in L. apply Qlt_Rlt in U.
    rewrite Q2R_Z in L, U. rewrite Q2R_opp, Q2R_mult, Q2R_Z in L, U. rewrite plus_IZR in U.
    set (z := Qfloor _) in *. destruct (base_Int_part (- (Q2R x * IZR (Z.pos n)))) as [B1 B2]. set (i := Int_part _) in *.
    assert (i < z + 1)%Z by (apply lt_IZR; rewrite plus_IZR; lra). assert (z < i + 1)%Z by (apply lt_IZR; rewrite plus_IZR; lra).
    lia. }
  rewrite E. unfold Qceiling. unfold Q2R at 1. simpl Qnum. simpl Qden. rewrite opp_IZR. reflexivity.
Qed.

Lemma tanh_agrees y : (0 <= y)%Q -> tanh_above (Q2R y) = Q2R (tanh_above_q y).
Proof.
  intros H. unfold tanh_above, tanh_above_q. set (z := (y * (15 + y * y) / (15 + 6 * (y * y)))%Q).
  assert (E : Q2R y * (15 + Q2R y ^ 2) / (15 + 6 * Q2R y ^ 2) = Q2R z).
  { unfold z. rewrite Q2R_div, Q2R_mult, !Q2R_plus, !Q2R_mult.
    - assert (A : Q2R 15 = 15) by (unfold Q2R; simpl; lra). assert (B : Q2R 6 = 6) by (unfold Q2R; simpl; lra).
      rewrite A, B. simpl. rewrite !Rmult_1_r. reflexivity.
    - intros Z. apply Qeq_eqR in Z. rewrite Q2R_plus, !Q2R_mult in Z.
      assert (A : Q2R 15 = 15) by (unfold Q2R; simpl; lra). assert (B : Q2R 6 = 6) by (unfold Q2R; simpl; lra).
      rewrite A, B, Q2R_zero in Z. pose proof (Rle_0_sqr (Q2R y)) as S. unfold Rsqr in S. lra. }
  rewrite E. destruct (Qle_bool 1 z) eqn:L.
  - apply Qle_bool_Q2R in L. rewrite Q2R_one in *. rewrite Rmin_left; auto.
  - rewrite Rmin_right; auto. destruct (Rle_dec (Q2R z) 1) as [|N]; auto. exfalso.
    assert (K : Qle_bool 1 z = true) by (apply Qle_bool_Q2R; rewrite Q2R_one; lra). congruence.
Qed.

Section Agreement.
  Context {record : Type} {O : Ordered record}.
  Variables (n : positive) (roots : nat) (budget keys_budget : vector) (b : vector_q) (notions : list notion) (deltas : list (option Q)).
  Hypothesis budget_agrees : agree_vector budget b.
  Hypothesis keys_agree : agree_vector keys_budget (keys_budget_q deltas).

  Notation tables := (Concentrated.tables (record := record)).
  Notation rates := (Concentrated.rates (up_to n) (up_to_above n)).
  Notation notion_of := (notion_q notions).
  Notation book_of := (Concentrated.book_of notion_of).
  Notation keys_of := (Concentrated.keys_of roots (has_keys_q deltas)).
  Notation kind := (Concentrated.kind roots).
  Notation budgets := (Concentrated.budgets roots budget keys_budget).
  Notation step := (Books.step tables rates roots budgets book_of keys_of kind).

  (** What is measured is not seen from outside: any queries at this ε, or this ρ,
      that spend this δ for each unit of distance. *)
  Definition asked_at (a : amount) (d : Q) (q : Concentrated.asked (record := record)) : Prop :=
    Concentrated.at_epsilon q = match a with Epsilon _ => true | Rho _ => false end /\ Concentrated.spends_of q = Q2R d.

  (** Thresholds are right for the scales of the table. *)
  Definition rightly (s : Books.State tables) (t : nat) (Qs : list (Concentrated.asked (record := record))) (e : R) : Prop :=
    forall q c, In q Qs -> Concentrated.right_for q e
      (Books.reach roots book_of keys_of c (Books.book tables s c) (Books.sensitivity_of tables s t)) = true.

  Inductive erases (s : Books.State tables) : Books.Action tables -> command -> Prop :=
    | erases_assign : forall t F f ts, erases s (Books.Assign tables t (existT _ F f) ts) (Assign_ t F ts)
    | erases_partition : forall t f k dest, erases s (Books.Partition_ tables t f k dest) (Partition_ t k dest)
    | erases_query : forall t f Qs a d, Qs <> [] -> Forall (asked_at a d) Qs -> rightly s t Qs (Q2R (number a)) ->
        erases s (Books.Query tables t f Qs (Q2R (number a))) (Query_ t a d)
    | erases_price : forall t Qs a d, Qs <> [] -> Forall (asked_at a d) Qs -> rightly s t Qs (Q2R (number a)) ->
        erases s (Books.AskPrice tables t Qs (Q2R (number a))) (Price_ t a d)
    | erases_scale : forall t, erases s (Books.AskScale tables t) (Scale_ t)
    | erases_budget : erases s (Books.AskBudget tables) Budget_.

  Definition shows (r : General.Reply tables) (v : verdict) : Prop :=
    match v with
    | Tau_ => r = General.Shows tables (General.Tau tables)
    | Bottom_ => r = General.Shows tables (General.Bottom tables)
    | Refused_ => r = General.Shows tables (General.Refused tables)
    | Prices_ ps => r = General.Shows tables (General.Price tables (map Q2R ps))
    | Factor_ x => r = General.Shows tables (General.Scale tables (Q2R x))
    | Left_ bs => r = General.Shows tables (General.Budget tables (map Q2R bs))
    | Measured_ => exists T f Qs e, r = General.Measures tables T f Qs e
    end.

  (** Of the books only those that roots are in. *)
  Definition agree_books (s : Books.State tables) (q : books_q) : Prop :=
    (forall c, (c <= last_book roots)%nat -> agree (Books.book tables s c) (book_q roots q c)) /\
    forall t, agree_vector (Books.sensitivity_of tables s t) (tables_q q t).

  Lemma book_of_below x : (x < roots)%nat -> (book_of x <= last_book roots)%nat.
  Proof. intros H. unfold Concentrated.book_of, last_book. destruct (notion_of x); lia. Qed.

  Lemma books_below x c : (x < roots)%nat -> In c (Books.books_of book_of keys_of x) -> (c <= last_book roots)%nat.
  Proof.
    intros H [<-|K]; [apply book_of_below, H|]. unfold Concentrated.keys_of in K. destruct (has_keys_q deltas x); [|contradiction].
    destruct K as [<-|[]]. unfold last_book. lia.
  Qed.

  Lemma budgets_agree c : agree_vector (budgets c) (budgets_q roots b deltas c).
  Proof. unfold Concentrated.budgets, budgets_q, kind_q. destruct (kind c); assumption. Qed.

  Lemma start_agrees D : agree_books (Books.init tables roots [] D) (start_books roots).
  Proof.
    split.
    - intros c Hc. unfold book_q, start_books. cbn [all_books]. rewrite nth_repeat. apply opening_agrees.
    - intros t. unfold Books.sensitivity_of. simpl. destruct (Nat.ltb t roots); simpl; auto using agree_unit, agree_zero.
  Qed.

  Lemma reach_agrees c A a v w : agree A a -> agree_vector v w ->
    Books.reach roots book_of keys_of c A v = Q2R (reach_q roots notions deltas c a w).
  Proof.
    intros H Hv. unfold Books.reach, reach_q. set (l := map _ _).
    rewrite (largest_ext _ (fun x => Q2R (entry l x))).
    - apply (largest_agrees (fun x => Q2R (entry l x)) l); [intros x; reflexivity|symmetry; apply Q2R_zero].
    - intros x Hx. rewrite Nat.add_0_l. unfold entry, l.
      rewrite (nth_indep _ 0%Q ((fun x => if own_q roots notions deltas c x then price_q (fresh_q a) w 1 x else 0%Q) 0%nat))
        by (rewrite map_length, seq_length; exact Hx).
      rewrite (map_nth (fun x => if own_q roots notions deltas c x then price_q (fresh_q a) w 1 x else 0%Q)), seq_nth by exact Hx.
      rewrite Nat.add_0_l. unfold own_q. destruct (Books.own book_of keys_of c x); [|symmetry; apply Q2R_zero].
      rewrite <- Q2R_one. apply price_agrees; auto using fresh_agrees.
  Qed.

  Lemma reach_q_nonneg c a w A v : agree A a -> agree_vector v w -> (0 <= reach_q roots notions deltas c a w)%Q.
  Proof.
    intros H Hv. apply Rle_Qle. rewrite Q2R_zero, <- (reach_agrees c A a v w H Hv). apply Books.reach_nonneg.
  Qed.

  Definition agree_rate (k : option R) (l : option Q) : Prop :=
    match k, l with Some k, Some l => k = Q2R l | None, None => True | _, _ => False end.

  (** Queries of one kind cost what one of them does. *)
  Lemma dearest_agrees k a d Qs s : Qs <> [] -> Forall (asked_at a d) Qs -> (0 < number a)%Q -> (0 <= s)%Q ->
    (forall q, In q Qs -> Concentrated.right_for q (Q2R (number a)) (Q2R s) = true) ->
    agree_rate (Books.dearest tables rates k Qs (Q2R (number a)) (Q2R s)) (kappa_q n k a s).
  Proof.
    intros N F P Hs Hr.
    assert (K : forall q, In q Qs -> asked_at a d q -> agree_rate (Concentrated.kappa_of (up_to n) k q (Q2R (number a)) (Q2R s)) (kappa_q n k a s)).
    { intros q Hq [Ha _]. unfold Concentrated.kappa_of. rewrite (Hr q Hq), Ha. destruct k, a as [e|e]; simpl in *; auto.
      - rewrite <- up_agrees. f_equal. rewrite Q2R_mult. f_equal. rewrite <- tanh_agrees.
        + f_equal. rewrite !Q2R_mult. assert (A : Q2R (1 # 2) = / 2) by (unfold Q2R; simpl; lra). rewrite A. field.
        + apply Qmult_le_0_compat; [|discriminate]. apply Qmult_le_0_compat; auto. apply Qlt_le_weak, P.
      - rewrite Q2R_mult. reflexivity. }
    assert (Pe : 0 < Q2R (number a)) by (rewrite <- Q2R_zero; apply Qlt_Rlt, P).
    assert (Ps : 0 <= Q2R s) by (rewrite <- Q2R_zero; apply Qle_Rle, Hs). clear Hr.
    induction F as [|q Qs Hq F IH]; [congruence|]. pose proof (K q (or_introl eq_refl) Hq) as K1. cbn [Books.dearest].
    change (Books.kappa tables rates k q (Q2R (number a)) (Q2R s)) with
      (Concentrated.kappa_of (up_to n) k q (Q2R (number a)) (Q2R s)).
    pose proof (fun k1 => Books.kappa_nonneg tables rates k q (Q2R (number a)) (Q2R s) k1 Pe Ps) as NN.
    change (Books.kappa tables rates k q (Q2R (number a)) (Q2R s)) with
      (Concentrated.kappa_of (up_to n) k q (Q2R (number a)) (Q2R s)) in NN.
    destruct (Concentrated.kappa_of (up_to n) k q (Q2R (number a)) (Q2R s)) as [k1|] eqn:E1,
      (kappa_q n k a s) as [l|] eqn:El; simpl in K1; try contradiction; [|simpl; auto].
    destruct Qs as [|q' Qs].
    - simpl. rewrite Rmax_left; auto.
    - specialize (IH ltac:(discriminate) ltac:(intros x Hx; apply K; right; exact Hx)).
      destruct (Books.dearest tables rates k (q' :: Qs) (Q2R (number a)) (Q2R s)) as [k2|];
        simpl in IH; [|contradiction]. simpl. rewrite IH, K1. apply Rmax_left. lra.
  Qed.

  Lemma spent_agrees a d Qs : Qs <> [] -> Forall (asked_at a d) Qs -> (0 <= d)%Q -> Books.spent tables rates Qs = Q2R d.
  Proof.
    intros N F P. apply Qle_Rle in P. rewrite Q2R_zero in P. induction F as [|q Qs [_ Hq] F IH]; [congruence|].
    unfold Books.spent in *. cbn [fold_right].
    change (Books.spends tables rates q) with (Concentrated.spends_of q). rewrite Hq. destruct Qs as [|q' Qs].
    - simpl. apply Rmax_left, P.
    - rewrite (IH ltac:(discriminate)). apply Rmax_left. lra.
  Qed.

  Lemma delta_nonneg a d Qs : Qs <> [] -> Forall (asked_at a d) Qs -> (0 <= d)%Q.
  Proof.
    intros N F. destruct F as [|q Qs [_ Hq] F]; [congruence|]. apply Rle_Qle. rewrite Q2R_zero, <- Hq.
    apply (Books.spends_nonneg tables rates q).
  Qed.

  Section Asked.
    Variables (s : Books.State tables) (q : books_q) (t : nat) (a : amount) (d : Q) (Qs : list (Concentrated.asked (record := record))).
    Hypothesis agreed : agree_books s q.
    Hypothesis some : Qs <> [].
    Hypothesis alike_asked : Forall (asked_at a d) Qs.
    Hypothesis right_thresholds : rightly s t Qs (Q2R (number a)).
    Hypothesis positive_asked : (0 < number a)%Q.

    Lemma rate_agrees c : (c <= last_book roots)%nat ->
      agree_rate (Books.rate tables rates roots book_of keys_of kind s c (Books.sensitivity_of tables s t) Qs (Q2R (number a)))
        (rate_q n roots notions deltas c (book_q roots q c) (tables_q q t) a d).
    Proof.
      intros Hc. destruct agreed as [HB HV]. unfold Books.rate, rate_q.
      pose proof (fun x Hx => right_thresholds x c Hx) as Hr.
      rewrite (reach_agrees c _ _ _ _ (HB c Hc) (HV t)) in *. pose proof (reach_q_nonneg c _ _ _ _ (HB c Hc) (HV t)) as NN.
      set (r := reach_q _ _ _ _ _ _) in *. destruct (Req_EM_T (Q2R r) 0) as [Z|Z].
      - rewrite <- Q2R_zero in Z. apply Qeq_bool_Q2R in Z. rewrite Z. simpl. symmetry. apply Q2R_zero.
      - destruct (Qeq_bool r 0) eqn:E; [apply Qeq_bool_Q2R in E; rewrite Q2R_zero in E; contradiction|].
        unfold kind_q. destruct (kind c) as [k|]; [apply (dearest_agrees k a d); assumption|]. simpl.
        apply (spent_agrees a d); auto. apply (delta_nonneg a d Qs); auto.
    Qed.

    Lemma rate_or_0_agrees c : (c <= last_book roots)%nat ->
      Books.rate_or_0 tables rates roots book_of keys_of kind s c (Books.sensitivity_of tables s t) Qs (Q2R (number a)) =
        Q2R (rate_or_0_q n roots notions deltas q c (tables_q q t) a d).
    Proof.
      intros Hc. pose proof (rate_agrees c Hc) as K. unfold Books.rate_or_0, rate_or_0_q.
      destruct (Books.rate _ _ _ _ _ _ _ _ _ _ _), (rate_q _ _ _ _ _ _ _ _ _); simpl in K; try contradiction; auto.
      symmetry. apply Q2R_zero.
    Qed.

    Lemma has_delta_agrees x : (x < roots)%nat ->
      Books.has_delta tables rates book_of keys_of s (Books.sensitivity_of tables s t) Qs x =
        (has_keys_q deltas x || Qeq_bool d 0 || Qeq_bool (price_q (fresh_q (book_q roots q (book_of x))) (tables_q q t) 1 x) 0)%bool.
    Proof.
      intros Hx. destruct agreed as [HB HV]. unfold Books.has_delta, Concentrated.keys_of. destruct (has_keys_q deltas x); auto.
      rewrite (spent_agrees a d Qs some alike_asked (delta_nonneg a d Qs some alike_asked)).
      assert (Z : forall z, (if Req_EM_T (Q2R z) 0 then true else false) = Qeq_bool z 0).
      { intros z. destruct (Req_EM_T (Q2R z) 0) as [E|E].
        - rewrite <- Q2R_zero in E. apply Qeq_bool_Q2R in E. rewrite E. reflexivity.
        - destruct (Qeq_bool z 0) eqn:F; auto. apply Qeq_bool_Q2R in F. rewrite Q2R_zero in F. contradiction. }
      specialize (Z d) as Zd. destruct (Req_EM_T (Q2R d) 0); [rewrite <- Zd; reflexivity|]. rewrite <- Zd. cbn [orb].
      rewrite <- Z, <- Q2R_one. rewrite (price_agrees (fresh (Books.book tables s (book_of x))) (fresh_q (book_q roots q (book_of x))) _ (tables_q q t) 1 x); auto.
      apply fresh_agrees, HB, book_of_below, Hx.
    Qed.
  End Asked.

  Lemma forallb_agrees (f g : nat -> bool) : (forall x, (x < roots)%nat -> f x = g x) ->
    forallb f (seq 0 roots) = forallb g (seq 0 roots).
  Proof.
    intros H. assert (K : forall l, (forall x, In x l -> f x = g x) -> forallb f l = forallb g l).
    { induction l as [|x l IH]; intros E; cbn [forallb]; auto. rewrite (E x (or_introl eq_refl)). f_equal.
      apply IH. intros y Hy. apply E. right. exact Hy. }
    apply K. intros x Hx. apply H. apply in_seq in Hx. lia.
  Qed.

  Lemma may_ask_agrees s q t a d Qs : agree_books s q -> Qs <> [] -> Forall (asked_at a d) Qs -> rightly s t Qs (Q2R (number a)) ->
    (0 < number a)%Q ->
    Books.may_ask tables rates roots book_of keys_of kind s (Books.sensitivity_of tables s t) Qs (Q2R (number a)) =
      may_ask_q n roots notions deltas q (tables_q q t) a d.
  Proof.
    intros H N F W P. apply forallb_agrees. intros x Hx.
    pose proof (rate_agrees s q t a d Qs H N F W P (book_of x) (book_of_below x Hx)) as K. cbv beta zeta.
    rewrite (has_delta_agrees s q t a d Qs H N F x Hx). f_equal.
    destruct (Books.rate _ _ _ _ _ _ _ _ _ _ _), (rate_q _ _ _ _ _ _ _ _ _); simpl in K; try contradiction; auto.
  Qed.

  Lemma nth_books (f : nat -> accounts_q) c : (c <= last_book roots)%nat -> nth c (map f (seq 0 (S (last_book roots)))) (opening_q roots) = f c.
  Proof.
    intros H. rewrite (nth_indep _ _ (f 0%nat)) by (rewrite map_length, seq_length; lia).
    rewrite map_nth, seq_nth by lia. reflexivity.
  Qed.

  Lemma positive_number a : negb (Qle_bool (number a) 0) = true -> (0 < number a)%Q.
  Proof.
    intros H. apply Qnot_le_lt. intros L. apply Qle_bool_iff in L. rewrite L in H. discriminate.
  Qed.

  Theorem books_step_agrees s q a c : agree_books s q -> erases s a c ->
    let (r, s') := step s a in let (v, q') := step_books n roots b notions deltas q c in shows r v /\ agree_books s' q'.
  Proof.
    intros H E. pose proof H as [HB HV]. destruct E; cbn [Books.step step_books].
    - unfold General.assign. change (System.stability tables (existT _ F f)) with (stability F).
      change (General.sensitivity_of tables (Books.view tables s 0)) with (Books.sensitivity_of tables s).
      change (sources (General.accounts tables (Books.view tables s 0))) with (sources (Books.book tables s 0)).
      rewrite (agree_sources _ _ (HB 0%nat ltac:(lia))).
      pose proof (combine_agrees (sources_q (book_q roots q 0)) (stability F)
        (map (Books.sensitivity_of tables s) ts) (map (tables_q q) ts)) as K.
      assert (HF : Forall2 agree_vector (map (Books.sensitivity_of tables s) ts) (map (tables_q q) ts)).
      { clear K. induction ts as [|y ts IH]; cbn [map]; constructor; [apply HV|apply IH]. }
      specialize (K HF). destruct (combine _ _ _) as [v|], (combine_q _ _ _) as [w|]; simpl in K; try contradiction.
      + split; [reflexivity|]. split; [exact HB|]. intros y. unfold Books.sensitivity_of. simpl. unfold General.bind.
        destruct (Nat.eqb y t); simpl; [exact K|apply HV].
      + split; [reflexivity|]. split; assumption.
    - unfold General.partition. cbn [fst snd]. split; [reflexivity|]. split.
      + intros c Hc. unfold book_q. cbn [all_books]. rewrite nth_books by exact Hc. apply divide_agrees; [exact (HB c Hc)|apply HV].
      + intros y. unfold Books.sensitivity_of. cbn [Books.environment General.environment tables_q].
        change (sources (General.accounts tables (Books.view tables s 0))) with (sources (Books.book tables s 0)).
        rewrite (agree_sources _ _ (HB 0%nat ltac:(lia))).
        destruct (Nat.leb dest y && Nat.ltb y (dest + k))%bool; simpl; [apply agree_unit|apply HV].
    - rewrite (positive_agrees (number a)). destruct (negb (Qle_bool (number a) 0)) eqn:P; [|split; [reflexivity|exact H]].
      apply positive_number in P. rewrite (may_ask_agrees s q t a d Qs H H0 H1 H2 P).
      destruct (may_ask_q _ _ _ _ _ _ _ _); [|split; [reflexivity|exact H]].
      assert (HC : forall c, (c <= last_book roots)%nat -> agree (Books.charged tables rates roots book_of keys_of kind s
        (Books.sensitivity_of tables s t) Qs (Q2R (number a)) c)
        (nth c (charged_q n roots notions deltas q (tables_q q t) a d) (opening_q roots))).
      { intros c Hc. unfold charged_q. rewrite nth_books by exact Hc. unfold Books.charged.
        rewrite (rate_or_0_agrees s q t a d Qs H H0 H1 H2 P c Hc). apply charge_agrees; [exact (HB c Hc)|apply HV]. }
      assert (HW : Books.within roots budgets book_of keys_of (Books.charged tables rates roots book_of keys_of kind s
        (Books.sensitivity_of tables s t) Qs (Q2R (number a))) =
        within_q roots b notions deltas (charged_q n roots notions deltas q (tables_q q t) a d)).
      { apply forallb_agrees. intros x Hx. cbv beta. unfold books_of_q.
        pose proof (books_below x) as Bb. induction (Books.books_of book_of keys_of x) as [|c l IH]; cbn [forallb]; auto.
        rewrite IH by (intros c' Hx' Hc'; apply Bb; [exact Hx'|right; exact Hc']). f_equal.
        rewrite (agree_counters _ _ (HC c (Bb c Hx (or_introl eq_refl))) x), (budgets_agree c x).
        destruct (Rle_dec _ _) as [L|L].
        - apply Qle_bool_Q2R in L. rewrite L. reflexivity.
        - destruct (Qle_bool _ _) eqn:E; auto. apply Qle_bool_Q2R in E. contradiction. }
      rewrite HW. destruct (within_q _ _ _ _ _).
      + split; [do 4 eexists; reflexivity|]. split; [exact HC|exact HV].
      + split; [reflexivity|exact H].
    - rewrite (positive_agrees (number a)). destruct (negb (Qle_bool (number a) 0)) eqn:P; [|split; [reflexivity|exact H]].
      apply positive_number in P. rewrite (may_ask_agrees s q t a d Qs H H0 H1 H2 P).
      destruct (may_ask_q _ _ _ _ _ _ _ _); [|split; [reflexivity|exact H]]. split; [|exact H].
      unfold shows. do 2 f_equal. rewrite map_map. apply map_ext_in. intros x Hx. apply in_seq in Hx.
      rewrite (rate_or_0_agrees s q t a d Qs H H0 H1 H2 P (book_of x) (book_of_below x ltac:(lia))).
      apply price_agrees; auto. apply HB, book_of_below. lia.
    - split; [|exact H]. unfold shows. do 2 f_equal. apply scaling_factor_agrees; auto. apply HB. lia.
    - split; [|exact H]. unfold shows. do 2 f_equal. rewrite map_map. apply map_ext_in. intros x Hx. apply in_seq in Hx.
      rewrite Q2R_red, Q2R_minus, <- (budget_agrees x). unfold paid_q. rewrite (Concentrated.budget_of roots budget keys_budget notion_of x) by lia.
      rewrite (agree_counters _ _ (HB (book_of x) (book_of_below x ltac:(lia))) x). reflexivity.
  Qed.
End Agreement.

(** ** Thresholds of Laplace noise

    [safe_q A most tau δ S]: with A no less than exp(-ε/most), whether the threshold
    is right on the scale S. *)

Fixpoint power_q (x : Q) (n : nat) : Q := match n with O => 1%Q | S n => (x * power_q x n)%Q end.

Lemma power_agrees x n : Q2R (power_q x n) = Q2R x ^ n.
Proof. induction n as [|n IH]; cbn [power_q pow]; [apply Q2R_one|]. rewrite Q2R_mult, IH. reflexivity. Qed.

Definition safe_q (A : Q) (most : positive) (tau : Z) (delta : Q) (scale : nat) : bool :=
  forallb (fun c => ((Z.of_nat c <? tau)%Z &&
    Qle_bool (inject_Z (Z.pos most) * (power_q A (Z.to_nat (tau - Z.of_nat c)) / (1 + A))) (inject_Z (Z.of_nat c) * delta))%bool) (seq 1 scale).

Theorem safe_q_right {record : Type} {O : Ordered record} (of : Discovery.Spread (record := record)) A tau delta scale e : 0 < e ->
  Mechanisms.decay (Private.rate e (Discovery.most of)) <= Q2R A -> safe_q A (Discovery.most of) tau delta scale = true ->
  Discovery.safe_for of tau (Q2R delta) (Mechanisms.laplace (Private.rate e (Discovery.most of))) (INR scale).
Proof.
  intros He HA H c H1 Hc. apply INR_le in Hc. unfold safe_q in H. rewrite forallb_forall in H.
  specialize (H c ltac:(apply in_seq; lia)). apply andb_prop in H. destruct H as [L H]. apply Z.ltb_lt in L.
  apply Qle_bool_Q2R in H. pose proof (Private.rate_pos e (Discovery.most of) He) as Hr.
  pose proof (Mechanisms.decay_range _ Hr) as R.
  destruct (Z.to_nat (tau - Z.of_nat c)) as [|m] eqn:Em; [lia|].
  assert (Pa : 0 < 1 + Q2R A) by lra.
  assert (NZ : ~ (1 + A == 0)%Q) by (intros Z; apply Qeq_eqR in Z; rewrite Q2R_plus, Q2R_one, Q2R_zero in Z; lra).
  rewrite !Q2R_mult, Q2R_div, power_agrees, Q2R_plus, Q2R_one, !Q2R_Z, <- INR_IZR_INZ in H by exact NZ.
  eapply Rle_trans; [|exact H]. apply Rmult_le_compat_l; [apply IZR_le; lia|].
  apply (Discovery.laplace_tail_bound _ Hr); [lia|exact HA].
Qed.

(** ** Printing *)

Open Scope string_scope.

Definition show_book (roots : nat) (notions : list notion) (deltas : list (option Q)) (A : accounts_q) (b : nat) : string :=
  let shown x := match b with
    | O => true
    | S _ => negb (Nat.ltb x roots) || own_q roots notions deltas b x
    end in
  "C=" ++ show_list show_Q (map (fun x => if shown x then entry (counters_q A) x else 0%Q) (seq 0 (sources_q A))) ++
  " M=" ++ show_list show_Q (rev (map maximum_q (partitions_q A))).

Definition show_books (roots : nat) (notions : list notion) (deltas : list (option Q)) (s : books_q) : string :=
  let root x := match notion_q notions x with Pure => "" | Concentrated => show_book roots notions deltas (book_q roots s (S x)) (S x) end in
  let keys x := if has_keys_q deltas x then show_book roots notions deltas (book_q roots s (S (roots + x))) (S (roots + x)) else "" in
  concat " | " (show_book roots notions deltas (book_q roots s 0) 0 :: map root (seq 0 roots) ++ map keys (seq 0 roots)).

Fixpoint books_session_from (n : positive) (roots : nat) (budget : vector_q) (notions : list notion) (deltas : list (option Q)) (s : books_q)
    (cs : list command) : list string :=
  match cs with
  | [] => []
  | c :: cs => let (v, s') := step_books n roots budget notions deltas s c in
      (show_verdict v ++ " | " ++ show_books roots notions deltas s') :: books_session_from n roots budget notions deltas s' cs
  end.

Definition books_session (n : positive) (roots : nat) (budget : vector_q) (notions : list notion) (deltas : list (option Q))
    (cs : list command) : string :=
  concat "; " (books_session_from n roots budget notions deltas (start_books roots) cs).

Definition show_kappa (n : positive) (k : notion) (a : amount) (s : Q) : string :=
  match kappa_q n k a s with Some x => show_Q x | None => "refused" end.

Definition show_safe (A : Q) (most : positive) (tau : Z) (delta : Q) (scale : nat) : string :=
  if safe_q A most tau delta scale then "safe" else "refused".
