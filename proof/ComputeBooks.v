(** * Books, executable

    The rules of [Concentrated] on public state only, over exact rationals, and the
    proof that they agree with them step for step, as [Compute] does for [General].

    [books_session n roots budgets notions commands] starts with tables
    0 .. roots-1 as the roots; n is how many units make 1, to which κ of what is
    asked at ε is rounded up in a book in ρ.  It prints one record per command,
    separated by "; ":

<<
      verdict | C=c,c,… M=m,m,… | C=… M=…
>>

    first the pure roots' book, then that of each root, empty where it is pure.
    Counters are of all sources in order, in a root's own book of it and of parts;
    other roots are printed there as 0.  [show_kappa] prints one κ. *)

Require Import QArith Qreals Qround Reals Lra Lia List Arith ZArith String Bool.
Require Import Fpinq.Bags Fpinq.Plans Fpinq.Sources Fpinq.Scale Fpinq.Closeness Fpinq.Hyperbolic Fpinq.Compute.
Require Fpinq.System Fpinq.General Fpinq.Instance Fpinq.Books Fpinq.Concentrated.
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
  Variables (n : positive) (roots : nat) (budget : vector_q) (notions : list notion).

  Definition notion_q (x : nat) : notion := nth x notions Pure.
  Definition own_q (b x : nat) : bool := Nat.eqb (Concentrated.book_of notion_q x) b.

  Definition reach_q (b : nat) (A : accounts_q) (v : vector_q) : Q :=
    largest_q (map (fun x => if own_q b x then price_q (fresh_q A) v 1 x else 0) (seq 0 roots)) 0 roots 0.

  Definition rate_q (b : nat) (A : accounts_q) (v : vector_q) (a : amount) : option Q :=
    let r := reach_q b A v in if Qeq_bool r 0 then Some 0 else kappa_q n (Concentrated.kind b) a r.

  Record books_q := { tables_q : nat -> vector_q; all_books : list accounts_q }.

  Definition book_q (s : books_q) (b : nat) : accounts_q := nth b (all_books s) (opening_q roots).

  Definition rate_or_0_q (s : books_q) (b : nat) (v : vector_q) (a : amount) : Q :=
    match rate_q b (book_q s b) v a with Some k => k | None => 0 end.

  Definition may_ask_q (s : books_q) (v : vector_q) (a : amount) : bool :=
    forallb (fun x => let b := Concentrated.book_of notion_q x in
      match rate_q b (book_q s b) v a with Some _ => true | None => false end) (seq 0 roots).

  Definition charged_q (s : books_q) (v : vector_q) (a : amount) : list accounts_q :=
    map (fun b => charge_q (book_q s b) v (rate_or_0_q s b v a)) (seq 0 (S roots)).

  Definition paid_q (books : list accounts_q) (x : nat) : Q :=
    entry (counters_q (nth (Concentrated.book_of notion_q x) books (opening_q roots))) x.

  Definition within_q (books : list accounts_q) : bool :=
    forallb (fun x => Qle_bool (paid_q books x) (entry budget x)) (seq 0 roots).

  Inductive command :=
    | Assign_ (t : nat) (s : shape) (ts : list nat)
    | Partition_ (t k dest : nat)
    | Query_ (t : nat) (a : amount)
    | Price_ (t : nat) (a : amount)
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
                  all_books := map (fun b => divide_q (book_q s b) (tables_q s t) k) (seq 0 (S roots)) |})
    | Query_ t a =>
        if negb (Qle_bool (number a) 0) then
          if may_ask_q s (tables_q s t) a then
            let books := charged_q s (tables_q s t) a in
            if within_q books then (Measured_, {| tables_q := tables_q s; all_books := books |}) else (Bottom_, s)
          else (Refused_, s)
        else (Refused_, s)
    | Price_ t a =>
        if negb (Qle_bool (number a) 0) then
          if may_ask_q s (tables_q s t) a then
            (Prices_ (map (fun x => let b := Concentrated.book_of notion_q x in
              price_q (book_q s b) (tables_q s t) (rate_or_0_q s b (tables_q s t) a) x) (seq 0 roots)), s)
          else (Refused_, s)
        else (Refused_, s)
    | Scale_ t => (Factor_ (scaling_factor_q roots (book_q s 0) (tables_q s t)), s)
    | Budget_ => (Left_ (map (fun x => Qred (entry budget x - paid_q (all_books s) x)) (seq 0 roots)), s)
    end.

  Definition start_books : books_q :=
    {| tables_q := fun t => if Nat.ltb t roots then unit_q t else []; all_books := repeat (opening_q roots) (S roots) |}.
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
  Variables (n : positive) (roots : nat) (budget : vector) (b : vector_q) (notions : list notion).
  Hypothesis budget_agrees : agree_vector budget b.

  Notation tables := (Concentrated.tables (record := record)).
  Notation rates := (Concentrated.rates (up_to n) (up_to_above n)).
  Notation notion_of := (notion_q notions).
  Notation book_of := (Concentrated.book_of notion_of).
  Notation step := (Books.step tables rates roots budget book_of Concentrated.kind).

  (** What is measured is not seen from outside: any queries at this ε, or this ρ. *)
  Definition asked_at (a : amount) (q : Concentrated.asked (record := record)) : Prop :=
    match a, q with
    | Epsilon _, Concentrated.AtEpsilon _ | Rho _, Concentrated.AtRho _ => True
    | _, _ => False
    end.

  Inductive erases : Books.Action tables -> command -> Prop :=
    | erases_assign : forall t s f ts, erases (Books.Assign tables t (existT _ s f) ts) (Assign_ t s ts)
    | erases_partition : forall t f k dest, erases (Books.Partition_ tables t f k dest) (Partition_ t k dest)
    | erases_query : forall t f Qs a, Qs <> [] -> Forall (asked_at a) Qs ->
        erases (Books.Query tables t f Qs (Q2R (number a))) (Query_ t a)
    | erases_price : forall t Qs a, Qs <> [] -> Forall (asked_at a) Qs ->
        erases (Books.AskPrice tables t Qs (Q2R (number a))) (Price_ t a)
    | erases_scale : forall t, erases (Books.AskScale tables t) (Scale_ t)
    | erases_budget : erases (Books.AskBudget tables) Budget_.

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
    (forall c, (c <= roots)%nat -> agree (Books.book tables s c) (book_q roots q c)) /\
    forall t, agree_vector (Books.sensitivity_of tables s t) (tables_q q t).

  Lemma book_of_below x : (x < roots)%nat -> (book_of x <= roots)%nat.
  Proof. intros H. unfold Concentrated.book_of. destruct (notion_of x); lia. Qed.

  Lemma start_agrees D : agree_books (Books.init tables roots [] D) (start_books roots).
  Proof.
    split.
    - intros c Hc. unfold book_q, start_books. cbn [all_books]. rewrite nth_repeat. apply opening_agrees.
    - intros t. unfold Books.sensitivity_of. simpl. destruct (Nat.ltb t roots); simpl; auto using agree_unit, agree_zero.
  Qed.

  Lemma reach_agrees c A a v w : agree A a -> agree_vector v w ->
    Books.reach roots book_of c A v = Q2R (reach_q roots notions c a w).
  Proof.
    intros H Hv. unfold Books.reach, reach_q. set (l := map _ _).
    rewrite (largest_ext _ (fun x => Q2R (entry l x))).
    - apply (largest_agrees (fun x => Q2R (entry l x)) l); [intros x; reflexivity|symmetry; apply Q2R_zero].
    - intros x Hx. rewrite Nat.add_0_l. unfold entry, l.
      rewrite (nth_indep _ 0%Q ((fun x => if own_q notions c x then price_q (fresh_q a) w 1 x else 0%Q) 0%nat))
        by (rewrite map_length, seq_length; exact Hx).
      rewrite (map_nth (fun x => if own_q notions c x then price_q (fresh_q a) w 1 x else 0%Q)), seq_nth by exact Hx.
      rewrite Nat.add_0_l. unfold own_q, Books.own. destruct (Nat.eqb (book_of x) c); [|symmetry; apply Q2R_zero].
      rewrite <- Q2R_one. apply price_agrees; auto using fresh_agrees.
  Qed.

  Lemma reach_q_nonneg c a w A v : agree A a -> agree_vector v w -> (0 <= reach_q roots notions c a w)%Q.
  Proof.
    intros H Hv. apply Rle_Qle. rewrite Q2R_zero, <- (reach_agrees c A a v w H Hv). apply Books.reach_nonneg.
  Qed.

  Definition agree_rate (k : option R) (l : option Q) : Prop :=
    match k, l with Some k, Some l => k = Q2R l | None, None => True | _, _ => False end.

  (** Queries of one kind cost what one of them does. *)
  Lemma dearest_agrees k a Qs s : Qs <> [] -> Forall (asked_at a) Qs -> (0 < number a)%Q -> (0 <= s)%Q ->
    agree_rate (Books.dearest tables rates k Qs (Q2R (number a)) (Q2R s)) (kappa_q n k a s).
  Proof.
    intros N F P Hs.
    assert (K : forall q, asked_at a q -> agree_rate (Concentrated.kappa_of (up_to n) k q (Q2R (number a)) (Q2R s)) (kappa_q n k a s)).
    { intros q Hq. destruct k, a as [e|e], q as [q|q]; simpl in *; try contradiction; auto.
      - rewrite <- up_agrees. f_equal. rewrite Q2R_mult. f_equal. rewrite <- tanh_agrees.
        + f_equal. rewrite !Q2R_mult. assert (A : Q2R (1 # 2) = / 2) by (unfold Q2R; simpl; lra). rewrite A. field.
        + apply Qmult_le_0_compat; [|discriminate]. apply Qmult_le_0_compat; auto. apply Qlt_le_weak, P.
      - rewrite Q2R_mult. reflexivity. }
    assert (Pe : 0 < Q2R (number a)) by (rewrite <- Q2R_zero; apply Qlt_Rlt, P).
    assert (Ps : 0 <= Q2R s) by (rewrite <- Q2R_zero; apply Qle_Rle, Hs).
    induction F as [|q Qs Hq F IH]; [congruence|]. specialize (K q Hq). cbn [Books.dearest].
    change (Books.kappa tables rates k q (Q2R (number a)) (Q2R s)) with
      (Concentrated.kappa_of (up_to n) k q (Q2R (number a)) (Q2R s)).
    pose proof (fun k1 => Books.kappa_nonneg tables rates k q (Q2R (number a)) (Q2R s) k1 Pe Ps) as NN.
    change (Books.kappa tables rates k q (Q2R (number a)) (Q2R s)) with
      (Concentrated.kappa_of (up_to n) k q (Q2R (number a)) (Q2R s)) in NN.
    destruct (Concentrated.kappa_of (up_to n) k q (Q2R (number a)) (Q2R s)) as [k1|] eqn:E1,
      (kappa_q n k a s) as [l|] eqn:El; simpl in K; try contradiction; [|simpl; auto].
    destruct Qs as [|q' Qs].
    - simpl. rewrite Rmax_left; auto.
    - specialize (IH ltac:(discriminate)). destruct (Books.dearest tables rates k (q' :: Qs) (Q2R (number a)) (Q2R s)) as [k2|];
        simpl in IH; [|contradiction]. simpl. rewrite IH, K. apply Rmax_left. lra.
  Qed.

  Lemma rate_agrees s q c t a Qs : agree_books s q -> (c <= roots)%nat -> Qs <> [] -> Forall (asked_at a) Qs -> (0 < number a)%Q ->
    agree_rate (Books.rate tables rates roots book_of Concentrated.kind s c (Books.sensitivity_of tables s t) Qs (Q2R (number a)))
      (rate_q n roots notions c (book_q roots q c) (tables_q q t) a).
  Proof.
    intros [HB HV] Hc N F P. unfold Books.rate, rate_q.
    rewrite (reach_agrees c _ _ _ _ (HB c Hc) (HV t)). pose proof (reach_q_nonneg c _ _ _ _ (HB c Hc) (HV t)) as NN.
    set (r := reach_q _ _ _ _ _) in *. destruct (Req_EM_T (Q2R r) 0) as [Z|Z].
    - rewrite <- Q2R_zero in Z. apply Qeq_bool_Q2R in Z. rewrite Z. simpl. symmetry. apply Q2R_zero.
    - destruct (Qeq_bool r 0) eqn:E; [apply Qeq_bool_Q2R in E; rewrite Q2R_zero in E; contradiction|].
      apply dearest_agrees; assumption.
  Qed.

  Lemma rate_or_0_agrees s q c t a Qs : agree_books s q -> (c <= roots)%nat -> Qs <> [] -> Forall (asked_at a) Qs ->
    (0 < number a)%Q ->
    Books.rate_or_0 tables rates roots book_of Concentrated.kind s c (Books.sensitivity_of tables s t) Qs (Q2R (number a)) =
      Q2R (rate_or_0_q n roots notions q c (tables_q q t) a).
  Proof.
    intros H Hc N F P. pose proof (rate_agrees s q c t a Qs H Hc N F P) as K. unfold Books.rate_or_0, rate_or_0_q.
    destruct (Books.rate _ _ _ _ _ _ _ _ _ _), (rate_q _ _ _ _ _ _ _); simpl in K; try contradiction; auto.
    symmetry. apply Q2R_zero.
  Qed.

  Lemma forallb_agrees (f g : nat -> bool) : (forall x, (x < roots)%nat -> f x = g x) ->
    forallb f (seq 0 roots) = forallb g (seq 0 roots).
  Proof.
    intros H. assert (K : forall l, (forall x, In x l -> f x = g x) -> forallb f l = forallb g l).
    { induction l as [|x l IH]; intros E; cbn [forallb]; auto. rewrite (E x (or_introl eq_refl)). f_equal.
      apply IH. intros y Hy. apply E. right. exact Hy. }
    apply K. intros x Hx. apply H. apply in_seq in Hx. lia.
  Qed.

  Lemma may_ask_agrees s q t a Qs : agree_books s q -> Qs <> [] -> Forall (asked_at a) Qs -> (0 < number a)%Q ->
    Books.may_ask tables rates roots book_of Concentrated.kind s (Books.sensitivity_of tables s t) Qs (Q2R (number a)) =
      may_ask_q n roots notions q (tables_q q t) a.
  Proof.
    intros H N F P. apply forallb_agrees. intros x Hx.
    pose proof (rate_agrees s q (book_of x) t a Qs H (book_of_below x Hx) N F P) as K. cbv beta zeta.
    destruct (Books.rate _ _ _ _ _ _ _ _ _ _), (rate_q _ _ _ _ _ _ _); simpl in K; try contradiction; auto.
  Qed.

  Lemma nth_books (f : nat -> accounts_q) c : (c <= roots)%nat -> nth c (map f (seq 0 (S roots))) (opening_q roots) = f c.
  Proof.
    intros H. rewrite (nth_indep _ _ (f 0%nat)) by (rewrite map_length, seq_length; lia).
    rewrite map_nth, seq_nth by lia. reflexivity.
  Qed.

  Lemma positive_number a : negb (Qle_bool (number a) 0) = true -> (0 < number a)%Q.
  Proof.
    intros H. apply Qnot_le_lt. intros L. apply Qle_bool_iff in L. rewrite L in H. discriminate.
  Qed.

  Theorem books_step_agrees s q a c : agree_books s q -> erases a c ->
    let (r, s') := step s a in let (v, q') := step_books n roots b notions q c in shows r v /\ agree_books s' q'.
  Proof.
    intros H E. pose proof H as [HB HV]. destruct E; cbn [Books.step step_books].
    - unfold General.assign. change (System.stability tables (existT _ s0 f)) with (stability s0).
      change (General.sensitivity_of tables (Books.view tables s 0)) with (Books.sensitivity_of tables s).
      change (sources (General.accounts tables (Books.view tables s 0))) with (sources (Books.book tables s 0)).
      rewrite (agree_sources _ _ (HB 0%nat ltac:(lia))).
      pose proof (combine_agrees (sources_q (book_q roots q 0)) (stability s0)
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
      apply positive_number in P. rewrite (may_ask_agrees s q t a Qs H H0 H1 P).
      destruct (may_ask_q _ _ _ _ _ _); [|split; [reflexivity|exact H]].
      assert (HC : forall c, (c <= roots)%nat -> agree (Books.charged tables rates roots book_of Concentrated.kind s
        (Books.sensitivity_of tables s t) Qs (Q2R (number a)) c)
        (nth c (charged_q n roots notions q (tables_q q t) a) (opening_q roots))).
      { intros c Hc. unfold charged_q. rewrite nth_books by exact Hc. unfold Books.charged.
        rewrite (rate_or_0_agrees s q c t a Qs H Hc H0 H1 P). apply charge_agrees; [exact (HB c Hc)|apply HV]. }
      assert (HW : Books.within roots budget book_of (Books.charged tables rates roots book_of Concentrated.kind s
        (Books.sensitivity_of tables s t) Qs (Q2R (number a))) =
        within_q roots b notions (charged_q n roots notions q (tables_q q t) a)).
      { apply forallb_agrees. intros x Hx. cbv beta. unfold paid_q.
        rewrite (agree_counters _ _ (HC (book_of x) (book_of_below x Hx)) x), (budget_agrees x).
        destruct (Rle_dec _ _) as [L|L].
        - apply Qle_bool_Q2R in L. rewrite L. reflexivity.
        - destruct (Qle_bool _ _) eqn:E; auto. apply Qle_bool_Q2R in E. contradiction. }
      rewrite HW. destruct (within_q _ _ _ _).
      + split; [do 4 eexists; reflexivity|]. split; [exact HC|exact HV].
      + split; [reflexivity|exact H].
    - rewrite (positive_agrees (number a)). destruct (negb (Qle_bool (number a) 0)) eqn:P; [|split; [reflexivity|exact H]].
      apply positive_number in P. rewrite (may_ask_agrees s q t a Qs H H0 H1 P).
      destruct (may_ask_q _ _ _ _ _ _); [|split; [reflexivity|exact H]]. split; [|exact H].
      unfold shows. do 2 f_equal. rewrite map_map. apply map_ext_in. intros x Hx. apply in_seq in Hx.
      rewrite (rate_or_0_agrees s q (book_of x) t a Qs H (book_of_below x ltac:(lia)) H0 H1 P).
      apply price_agrees; auto. apply HB, book_of_below. lia.
    - split; [|exact H]. unfold shows. do 2 f_equal. apply scaling_factor_agrees; auto. apply HB. lia.
    - split; [|exact H]. unfold shows. do 2 f_equal. rewrite map_map. apply map_ext_in. intros x Hx. apply in_seq in Hx.
      rewrite Q2R_red, Q2R_minus, <- (budget_agrees x). unfold paid_q.
      rewrite (agree_counters _ _ (HB (book_of x) (book_of_below x ltac:(lia))) x). reflexivity.
  Qed.
End Agreement.

(** ** Printing *)

Open Scope string_scope.

Definition show_book (roots : nat) (notions : list notion) (A : accounts_q) (b : nat) : string :=
  let shown x := match b with
    | O => true
    | S _ => negb (Nat.ltb x roots) || own_q notions b x
    end in
  "C=" ++ show_list show_Q (map (fun x => if shown x then entry (counters_q A) x else 0%Q) (seq 0 (sources_q A))) ++
  " M=" ++ show_list show_Q (rev (map maximum_q (partitions_q A))).

Definition show_books (roots : nat) (notions : list notion) (s : books_q) : string :=
  concat " | " (map (fun b => match b with
    | O => show_book roots notions (book_q roots s 0) 0
    | S x => match notion_q notions x with Pure => "" | Concentrated => show_book roots notions (book_q roots s b) b end
    end) (seq 0 (S roots))).

Fixpoint books_session_from (n : positive) (roots : nat) (budget : vector_q) (notions : list notion) (s : books_q)
    (cs : list command) : list string :=
  match cs with
  | [] => []
  | c :: cs => let (v, s') := step_books n roots budget notions s c in
      (show_verdict v ++ " | " ++ show_books roots notions s') :: books_session_from n roots budget notions s' cs
  end.

Definition books_session (n : positive) (roots : nat) (budget : vector_q) (notions : list notion) (cs : list command) : string :=
  concat "; " (books_session_from n roots budget notions (start_books roots) cs).

Definition show_kappa (n : positive) (k : notion) (a : amount) (s : Q) : string :=
  match kappa_q n k a s with Some x => show_Q x | None => "refused" end.
