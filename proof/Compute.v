(** * The accounting, executable

    The rules of [General] on public state only, over exact rationals, so that
    [Compute] runs them; and the proof that they agree, step for step, with the
    rules the theorem speaks of.  A test can then run the same commands through
    this file and through [model/accounts.py] and compare.

    How to call it.  Write a file such as

<<
      From Coq Require Import QArith List String.
      From Fpinq Require Import Plans Compute.
      Import ListNotations.
      Set Printing Width 1000000.
      Compute session 2 [1#1; 5#2] [
        Assign_ 2 (Join (First 2) Rows Unique Rows) [0; 1]%nat; Partition_ 2 3 10;
        Query_ 10 (1#10); Query_ 11 (1#5); Price_ 12 (1#4); Scale_ 10; Budget_].
      Compute show_table.
>>

    compile it with [coqc -Q proof Fpinq file.v] and read the lines of the form
    [= "..."].  [session roots budgets commands] starts with tables 0 .. roots-1
    as the roots and prints one record per command, separated by "; ":

<<
      verdict C=c,c,… D=d,d,… M=m,m,…
>>

    where the verdict is [tau], [measured], [bottom], [refused] or, for a
    question, [price p,p,…] over the roots, [scale s] or [budget b,b,…] over the
    roots; C and D are the counters and direct charges of
    all sources in order, M the maxima of the partitions, oldest first.  A
    number is [n] or [n/d] in lowest terms; an empty list prints as nothing.
    [show_table] prints [Name=c,c,…] for every transformation, separated by
    "; ", with [inf] for infinity; [show_stability] does it for one shape. *)

Require Import QArith Qreals Reals Lra Lia List Arith ZArith String Bool.
Require Import Fpinq.Bags Fpinq.Plans Fpinq.Sources Fpinq.Scale.
Require Fpinq.System Fpinq.General Fpinq.Instance.
Import (coercions) Fpinq.System.
Arguments System.tables : simpl never.
From Coq Require DecimalString.
Import ListNotations.
Open Scope Q_scope.

(** ** The algorithm

    A vector is a list; sources beyond its end have 0. *)

Definition vector_q := list Q.
Definition entry (v : vector_q) (x : nat) : Q := nth x v 0.

(** l + v * e *)
Fixpoint add_scaled (l v : vector_q) (e : Q) : vector_q :=
  match l, v with
  | [], v => map (fun y => Qred (y * e)) v
  | l, [] => l
  | x :: l, y :: v => Qred (x + y * e) :: add_scaled l v e
  end.

Fixpoint unit_q (x : nat) : vector_q := match x with O => [1] | S x => 0 :: unit_q x end.

Definition public_q (n : nat) (v : vector_q) : bool := forallb (fun x => Qeq_bool (entry v x) 0) (seq 0 n).

Fixpoint combine_q (n : nat) (cs : list (option nat)) (vs : list vector_q) : option vector_q :=
  match cs, vs with
  | [], [] => Some []
  | c :: cs, v :: vs =>
      match combine_q n cs vs, c with
      | Some w, Some c => Some (add_scaled w v (inject_Z (Z.of_nat c)))
      | Some w, None => if public_q n v then Some w else None
      | None, _ => None
      end
  | _, _ => None
  end.

Record partition_q := { first_q : nat; parts_q : nat; sensitivity_q : vector_q; maximum_q : Q }.
Record accounts_q := { sources_q : nat; counters_q : vector_q; direct_q : vector_q; partitions_q : list partition_q }.

Definition opening_q (roots : nat) : accounts_q :=
  {| sources_q := roots; counters_q := []; direct_q := []; partitions_q := [] |}.

Definition max_q (x y : Q) : Q := if Qle_bool x y then y else x.

Fixpoint largest_q (C : vector_q) (lo k : nat) (m : Q) : Q :=
  match k with O => m | S j => max_q (entry C (lo + j)) (largest_q C lo j m) end.

Fixpoint settle_q (ps : list partition_q) (C : vector_q) : list partition_q * vector_q :=
  match ps with
  | [] => ([], C)
  | p :: ps =>
      let M := largest_q C (first_q p) (parts_q p) (maximum_q p) in
      let (qs, C') := settle_q ps (add_scaled C (sensitivity_q p) (M - maximum_q p)) in
      ({| first_q := first_q p; parts_q := parts_q p; sensitivity_q := sensitivity_q p; maximum_q := M |} :: qs, C')
  end.

Definition charge_q (A : accounts_q) (v : vector_q) (e : Q) : accounts_q :=
  let (ps, C) := settle_q (partitions_q A) (add_scaled (counters_q A) v e) in
  {| sources_q := sources_q A; counters_q := C; direct_q := add_scaled (direct_q A) v e; partitions_q := ps |}.

Fixpoint fits_q (roots : nat) (budget : vector_q) (A : accounts_q) : bool :=
  match roots with
  | O => true
  | S x => if Qle_bool (entry (counters_q A) x) (entry budget x) then fits_q x budget A else false
  end.

Definition price_q (A : accounts_q) (v : vector_q) (e : Q) (x : nat) : Q :=
  Qred (entry (counters_q (charge_q A v e)) x - entry (counters_q A) x).

Definition fresh_q (A : accounts_q) : accounts_q :=
  {| sources_q := sources_q A; counters_q := []; direct_q := [];
     partitions_q := map (fun p => {| first_q := first_q p; parts_q := parts_q p; sensitivity_q := sensitivity_q p;
                                      maximum_q := 0 |}) (partitions_q A) |}.

Definition scaling_factor_q (roots : nat) (A : accounts_q) (v : vector_q) : Q :=
  largest_q (map (price_q (fresh_q A) v 1) (seq 0 roots)) 0 roots 0.

Definition left_q (budget : vector_q) (A : accounts_q) (x : nat) : Q := Qred (entry budget x - entry (counters_q A) x).

Definition divide_q (A : accounts_q) (v : vector_q) (k : nat) : accounts_q :=
  {| sources_q := sources_q A + k; counters_q := counters_q A; direct_q := direct_q A;
     partitions_q :=
       {| first_q := sources_q A; parts_q := k; sensitivity_q := v; maximum_q := 0 |} :: partitions_q A |}.

(** ** It agrees with [Sources] *)

Definition agree_vector (v : vector) (w : vector_q) : Prop := forall x, v x = Q2R (entry w x).

Definition agree_partition (p : Partition) (q : partition_q) : Prop :=
  first p = first_q q /\ parts p = parts_q q /\ agree_vector (sensitivity p) (sensitivity_q q) /\
    maximum p = Q2R (maximum_q q).

Record agree (A : Accounts) (a : accounts_q) : Prop := {
  agree_sources : sources A = sources_q a;
  agree_counters : agree_vector (counters A) (counters_q a);
  agree_direct : agree_vector (direct A) (direct_q a);
  agree_partitions : Forall2 agree_partition (partitions A) (partitions_q a) }.

Lemma Q2R_red x : Q2R (Qred x) = Q2R x.
Proof. apply Qeq_eqR, Qred_correct. Qed.

Lemma Q2R_zero : Q2R 0 = 0%R.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma Q2R_one : Q2R 1 = 1%R.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma Q2R_nat n : Q2R (inject_Z (Z.of_nat n)) = INR n.
Proof. unfold Q2R, inject_Z. simpl. rewrite INR_IZR_INZ. lra. Qed.

Lemma Qle_bool_Q2R x y : Qle_bool x y = true <-> (Q2R x <= Q2R y)%R.
Proof. rewrite Qle_bool_iff. split; [apply Qle_Rle|apply Rle_Qle]. Qed.

Lemma entry_nil x : entry [] x = 0.
Proof. destruct x; reflexivity. Qed.

Lemma entry_add_scaled l v e x : Q2R (entry (add_scaled l v e) x) = (Q2R (entry l x) + Q2R (entry v x) * Q2R e)%R.
Proof.
  revert v x. induction l as [|a l IH]; intros v x.
  - cbn [add_scaled]. rewrite entry_nil, Q2R_zero. revert x.
    induction v as [|y v IH]; intros [|x]; unfold entry in *; cbn [map nth].
    + rewrite Q2R_zero. ring.
    + rewrite Q2R_zero. ring.
    + rewrite Q2R_red, Q2R_mult. ring.
    + apply IH.
  - destruct v as [|y v]; [cbn [add_scaled]; rewrite entry_nil, Q2R_zero; ring|].
    destruct x as [|x]; unfold entry in *; cbn [add_scaled nth].
    + rewrite Q2R_red, Q2R_plus, Q2R_mult. reflexivity.
    + apply IH.
Qed.

Lemma agree_add_scaled C c v w e : agree_vector C c -> agree_vector v w ->
  agree_vector (fun x => C x + v x * Q2R e)%R (add_scaled c w e).
Proof. intros HC Hv x. rewrite entry_add_scaled, HC, Hv. reflexivity. Qed.

Lemma agree_unit x : agree_vector (unit x) (unit_q x).
Proof.
  induction x as [|x IH]; intros [|y]; unfold unit, entry in *; cbn [unit_q nth Nat.eqb].
  - symmetry. apply Q2R_one.
  - destruct y; symmetry; apply Q2R_zero.
  - symmetry. apply Q2R_zero.
  - apply IH.
Qed.

Lemma agree_zero : agree_vector (fun _ => 0%R) [].
Proof. intros x. rewrite entry_nil, Q2R_zero. reflexivity. Qed.

Lemma max_q_correct x y : Q2R (max_q x y) = Rmax (Q2R x) (Q2R y).
Proof.
  unfold max_q. destruct (Qle_bool x y) eqn:E.
  - apply Qle_bool_Q2R in E. rewrite Rmax_right; auto.
  - rewrite Rmax_left; auto. destruct (Rle_dec (Q2R y) (Q2R x)) as [|N]; auto.
    assert (K : Qle_bool x y = true) by (apply Qle_bool_Q2R; lra). congruence.
Qed.

Lemma largest_agrees C c lo k M m : agree_vector C c -> M = Q2R m -> largest C lo k M = Q2R (largest_q c lo k m).
Proof. intros H ->. induction k; simpl; auto. rewrite max_q_correct, IHk, H. reflexivity. Qed.

Lemma settle_agrees ps : forall qs C c, Forall2 agree_partition ps qs -> agree_vector C c ->
  Forall2 agree_partition (fst (settle ps C)) (fst (settle_q qs c)) /\
    agree_vector (snd (settle ps C)) (snd (settle_q qs c)).
Proof.
  induction ps as [|p ps IH]; intros qs C c H HC; inversion H as [|p' q ps' rs Hp Hps]; subst; simpl; [auto|].
  destruct Hp as (E1 & E2 & E3 & E4).
  pose proof (largest_agrees C c (first p) (parts p) (maximum p) (maximum_q q) HC E4) as HL.
  rewrite E1, E2 in HL at 2.
  set (M := largest C (first p) (parts p) (maximum p)) in *.
  set (m := largest_q c (first_q q) (parts_q q) (maximum_q q)) in *.
  assert (H1 : agree_vector (fun x => C x + sensitivity p x * (M - maximum p))%R (add_scaled c (sensitivity_q q)
    (m - maximum_q q))).
  { intros x. rewrite entry_add_scaled, Q2R_minus, HC, E3, HL, E4. reflexivity. }
  destruct (IH rs _ _ Hps H1) as [I1 I2].
  destruct (settle ps _) as [us U], (settle_q rs _) as [vs V]. simpl in *. split; [|exact I2].
  constructor; [|exact I1]. repeat split; simpl; auto.
Qed.

Theorem charge_agrees A a v w e : agree A a -> agree_vector v w -> agree (charge A v (Q2R e)) (charge_q a w e).
Proof.
  intros [H1 H2 H3 H4] Hv. unfold charge, charge_q.
  destruct (settle_agrees (partitions A) (partitions_q a) _ _ H4 (agree_add_scaled _ _ _ _ e H2 Hv)) as [I1 I2].
  destruct (settle _ _) as [us U], (settle_q _ _) as [vs V]. simpl in *. split; simpl; auto using agree_add_scaled.
Qed.

Theorem divide_agrees A a v w k : agree A a -> agree_vector v w -> agree (divide A v k) (divide_q a w k).
Proof.
  intros [H1 H2 H3 H4] Hv. unfold divide, divide_q. split; simpl; [congruence|assumption|assumption|].
  constructor; [|assumption]. repeat split; simpl; try assumption. symmetry. apply Q2R_zero.
Qed.

Theorem opening_agrees roots : agree (opening roots) (opening_q roots).
Proof. split; simpl; auto using agree_zero. Qed.

Theorem fits_agrees budget b A a : agree_vector budget b -> agree A a ->
  forall roots, fits roots budget A = fits_q roots b a.
Proof.
  intros Hb [_ H _ _]. induction roots as [|x IH]; simpl; auto. rewrite H, Hb.
  destruct (Rle_dec (Q2R (entry (counters_q a) x)) (Q2R (entry b x))) as [L|N].
  - apply Qle_bool_Q2R in L. rewrite L. exact IH.
  - destruct (Qle_bool (entry (counters_q a) x) (entry b x)) eqn:E; auto. apply Qle_bool_Q2R in E. contradiction.
Qed.

Theorem price_agrees A a v w e x : agree A a -> agree_vector v w -> price A v (Q2R e) x = Q2R (price_q a w e x).
Proof.
  intros H Hv. unfold price, price_q. rewrite Q2R_red, Q2R_minus.
  rewrite (agree_counters _ _ (charge_agrees A a v w e H Hv)), (agree_counters _ _ H). reflexivity.
Qed.

Theorem fresh_agrees A a : agree A a -> agree (fresh A) (fresh_q a).
Proof.
  intros [H1 _ _ H4]. split; simpl; auto using agree_zero. induction H4 as [|p q ps qs (E1 & E2 & E3 & _) H IH];
    simpl; constructor; auto. repeat split; simpl; auto. symmetry. apply Q2R_zero.
Qed.

Theorem scaling_factor_agrees roots A a v w : agree A a -> agree_vector v w ->
  scaling_factor roots A v = Q2R (scaling_factor_q roots a w).
Proof.
  intros H Hv. unfold scaling_factor, scaling_factor_q. set (l := map _ _).
  rewrite (largest_ext _ (fun x => Q2R (entry l x))).
  - apply (largest_agrees (fun x => Q2R (entry l x)) l); [intros x; reflexivity|symmetry; apply Q2R_zero].
  - intros x Hx. rewrite Nat.add_0_l. rewrite <- Q2R_one, (price_agrees (fresh A) (fresh_q a) v w 1 x); auto using fresh_agrees.
    unfold entry, l. rewrite (nth_indep _ 0 (price_q (fresh_q a) w 1 0)) by (rewrite map_length, seq_length; exact Hx).
    rewrite map_nth, seq_nth by exact Hx. reflexivity.
Qed.

Lemma Qeq_bool_Q2R x y : Qeq_bool x y = true <-> Q2R x = Q2R y.
Proof. rewrite Qeq_bool_iff. split; [apply Qeq_eqR|apply eqR_Qeq]. Qed.

Lemma public_agrees v w n : agree_vector v w -> public n v = public_q n w.
Proof.
  intros H. unfold public_q. induction n as [|n IH]; auto. rewrite seq_S, forallb_app. simpl.
  rewrite <- IH, andb_true_r, H.
  destruct (Req_EM_T (Q2R (entry w n)) 0) as [E|N].
  - rewrite <- Q2R_zero in E. apply Qeq_bool_Q2R in E. rewrite E, andb_true_r. reflexivity.
  - destruct (Qeq_bool (entry w n) 0) eqn:E; [|rewrite andb_false_r; reflexivity].
    apply Qeq_bool_Q2R in E. rewrite Q2R_zero in E. contradiction.
Qed.

Definition agree_option (v : option vector) (w : option vector_q) : Prop :=
  match v, w with Some v, Some w => agree_vector v w | None, None => True | _, _ => False end.

Theorem combine_agrees n cs : forall vs ws, Forall2 agree_vector vs ws ->
  agree_option (combine n cs vs) (combine_q n cs ws).
Proof.
  induction cs as [|c cs IH]; intros vs ws H; destruct H as [|v w vs ws Hv H]; simpl; auto using agree_zero.
  specialize (IH vs ws H). destruct (combine n cs vs) as [u|], (combine_q n cs ws) as [t|]; simpl in *; try tauto.
  destruct c as [c|]; simpl.
  - intros x. rewrite entry_add_scaled, Q2R_nat, IH, Hv. reflexivity.
  - rewrite (public_agrees v w n Hv). destruct (public_q n w); simpl; auto.
Qed.

Lemma positive_agrees e {A} (x y : A) : (if Rlt_dec 0 (Q2R e) then x else y) = if negb (Qle_bool e 0) then x else y.
Proof.
  destruct (Qle_bool e 0) eqn:E; simpl.
  - apply Qle_bool_Q2R in E. rewrite Q2R_zero in E. destruct (Rlt_dec 0 (Q2R e)); [lra|reflexivity].
  - destruct (Rlt_dec 0 (Q2R e)) as [|He]; [reflexivity|].
    assert (K : Qle_bool e 0 = true) by (apply Qle_bool_Q2R; rewrite Q2R_zero; lra). congruence.
Qed.

(** ** Programs on public state *)

Inductive command :=
  | Assign_ (t : nat) (s : shape) (ts : list nat)
  | Partition_ (t k dest : nat)
  | Query_ (t : nat) (e : Q)
  | Price_ (t : nat) (e : Q)
  | Scale_ (t : nat)
  | Budget_.

Record state_q := { vectors_q : nat -> vector_q; public_accounts : accounts_q }.

Inductive verdict := Tau_ | Measured_ | Bottom_ | Refused_ | Prices_ (ps : list Q) | Factor_ (s : Q) | Left_ (bs : list Q).

Definition step_q (roots : nat) (budget : vector_q) (s : state_q) (c : command) : verdict * state_q :=
  let A := public_accounts s in
  match c with
  | Assign_ t F ts =>
      match combine_q (sources_q A) (stability F) (map (vectors_q s) ts) with
      | Some v => (Tau_, {| vectors_q := fun y => if Nat.eqb y t then v else vectors_q s y; public_accounts := A |})
      | None => (Refused_, s)
      end
  | Partition_ t k dest =>
      (Tau_, {| vectors_q := fun y => if (Nat.leb dest y && Nat.ltb y (dest + k))%bool
                                      then unit_q (sources_q A + (y - dest)) else vectors_q s y;
                public_accounts := divide_q A (vectors_q s t) k |})
  | Query_ t e =>
      if negb (Qle_bool e 0) then
        let charged := charge_q A (vectors_q s t) e in
        if fits_q roots budget charged then (Measured_, {| vectors_q := vectors_q s; public_accounts := charged |})
        else (Bottom_, s)
      else (Refused_, s)
  | Price_ t e =>
      if negb (Qle_bool e 0) then (Prices_ (map (price_q A (vectors_q s t) e) (seq 0 roots)), s) else (Refused_, s)
  | Scale_ t => (Factor_ (scaling_factor_q roots A (vectors_q s t)), s)
  | Budget_ => (Left_ (map (left_q budget A) (seq 0 roots)), s)
  end.

Definition start_q (roots : nat) : state_q :=
  {| vectors_q := fun t => if Nat.ltb t roots then unit_q t else []; public_accounts := opening_q roots |}.

(** ** It agrees with [General], on bags *)

Section Agreement.
  Context {record : Type} {O : Ordered record}.
  Notation bags := (Instance.bags (record := record)).
  Variables (roots : nat) (budget : vector) (b : vector_q).
  Hypothesis budget_agrees : agree_vector budget b.

  (** A command is an action without the functions, queries and data. *)
  Inductive erases : General.Action bags -> command -> Prop :=
    | erases_assign : forall t s f ts, erases (General.Assign bags t (existT _ s f) ts) (Assign_ t s ts)
    | erases_partition : forall t f k dest, erases (General.Partition_ bags t f k dest) (Partition_ t k dest)
    | erases_query : forall t f Qs e, erases (General.Query bags t f Qs (Q2R e)) (Query_ t e)
    | erases_price : forall t e, erases (General.AskPrice bags t (Q2R e)) (Price_ t e)
    | erases_scale : forall t, erases (General.AskScale bags t) (Scale_ t)
    | erases_budget : erases (General.AskBudget bags) Budget_.

  Definition shows (r : General.Reply bags) (v : verdict) : Prop :=
    match v with
    | Tau_ => r = General.Shows bags (General.Tau bags)
    | Bottom_ => r = General.Shows bags (General.Bottom bags)
    | Refused_ => r = General.Shows bags (General.Refused bags)
    | Prices_ ps => r = General.Shows bags (General.Price bags (map Q2R ps))
    | Factor_ x => r = General.Shows bags (General.Scale bags (Q2R x))
    | Left_ bs => r = General.Shows bags (General.Budget bags (map Q2R bs))
    | Measured_ => exists T f Qs e, r = General.Measures bags T f Qs e
    end.

  Definition agree_state (s : General.State bags) (q : state_q) : Prop :=
    agree (General.accounts bags s) (public_accounts q) /\
    forall t, agree_vector (General.sensitivity_of bags s t) (vectors_q q t).

  Lemma start_agrees D : agree_state (General.init bags roots [] D) (start_q roots).
  Proof.
    split; [apply opening_agrees|]. intros t. unfold General.sensitivity_of. simpl.
    destruct (Nat.ltb t roots); simpl; auto using agree_unit, agree_zero.
  Qed.

  Theorem step_agrees s q a c : agree_state s q -> erases a c ->
    let (r, s') := General.step bags roots budget s a in let (v, q') := step_q roots b q c in
    shows r v /\ agree_state s' q'.
  Proof.
    intros [HA HV] H. destruct H; simpl.
    - unfold General.assign. change (System.stability bags (existT _ s0 f)) with (stability s0).
      pose proof (combine_agrees (sources_q (public_accounts q)) (stability s0)
        (map (General.sensitivity_of bags s) ts) (map (vectors_q q) ts)) as K.
      assert (HF : Forall2 agree_vector (map (General.sensitivity_of bags s) ts) (map (vectors_q q) ts)).
      { clear K. induction ts; simpl; constructor; auto. }
      specialize (K HF). rewrite (agree_sources _ _ HA).
      destruct (combine _ _ _) as [v|], (combine_q _ _ _) as [w|]; simpl in K; try contradiction; simpl.
      + split; [reflexivity|]. split; [exact HA|]. intros y. unfold General.sensitivity_of. simpl.
        unfold General.bind.
        destruct (Nat.eqb y t); simpl; auto. apply HV.
      + split; [reflexivity|]. split; assumption.
    - split; [reflexivity|]. split; [apply divide_agrees; auto|]. intros y. unfold General.sensitivity_of. simpl.
      rewrite (agree_sources _ _ HA).
      destruct (Nat.leb dest y && Nat.ltb y (dest + k))%bool; simpl; [apply agree_unit|apply HV].
    - rewrite (positive_agrees e). destruct (negb (Qle_bool e 0)); simpl; [|split; [reflexivity|split; assumption]].
      pose proof (charge_agrees _ _ _ _ e HA (HV t)) as HC.
      rewrite (fits_agrees budget b _ _ budget_agrees HC roots).
      destruct (fits_q roots b (charge_q (public_accounts q) (vectors_q q t) e)); simpl.
      + split; [do 4 eexists; reflexivity|]. split; [exact HC|exact HV].
      + split; [reflexivity|]. split; assumption.
    - rewrite (positive_agrees e).
      destruct (negb (Qle_bool e 0)); simpl; (split; [|split; assumption]); [|reflexivity].
      do 2 f_equal. rewrite map_map. apply map_ext. intros x. apply price_agrees; auto.
    - split; [|split; assumption]. do 2 f_equal. apply scaling_factor_agrees; auto.
    - split; [|split; assumption]. do 2 f_equal. rewrite map_map. apply map_ext. intros x. unfold left_q.
      rewrite Q2R_red, Q2R_minus, <- (budget_agrees x), <- (agree_counters _ _ HA x). reflexivity.
  Qed.
End Agreement.

(** ** Printing *)

Open Scope string_scope.

Definition show_nat (n : nat) : string := DecimalString.NilZero.string_of_uint (Nat.to_uint n).
Definition show_Z (z : Z) : string := DecimalString.NilZero.string_of_int (Z.to_int z).
Definition show_Q (x : Q) : string :=
  match Qred x with Qmake n 1 => show_Z n | Qmake n d => show_Z n ++ "/" ++ show_Z (Z.pos d) end.

Definition show_list {A} (show : A -> string) (l : list A) : string := concat "," (map show l).

Definition show_accounts (A : accounts_q) : string :=
  let all (v : vector_q) := show_list show_Q (map (entry v) (seq 0 (sources_q A))) in
  "C=" ++ all (counters_q A) ++ " D=" ++ all (direct_q A) ++ " M=" ++ show_list show_Q (rev (map maximum_q (partitions_q A))).

Definition show_verdict (v : verdict) : string :=
  match v with
  | Tau_ => "tau" | Measured_ => "measured" | Bottom_ => "bottom" | Refused_ => "refused"
  | Prices_ ps => "price " ++ show_list show_Q ps
  | Factor_ x => "scale " ++ show_Q x
  | Left_ bs => "budget " ++ show_list show_Q bs
  end.

Fixpoint session_from (roots : nat) (budget : vector_q) (s : state_q) (cs : list command) : list string :=
  match cs with
  | [] => []
  | c :: cs => let (v, s') := step_q roots budget s c in
               (show_verdict v ++ " " ++ show_accounts (public_accounts s')) :: session_from roots budget s' cs
  end.

Definition session (roots : nat) (budget : vector_q) (cs : list command) : string :=
  concat "; " (session_from roots budget (start_q roots) cs).

(** The sensitivity vector that [combine_q] gives, over n sources. *)
Definition show_combine (n : nat) (cs : list (option nat)) (vs : list vector_q) : string :=
  match combine_q n cs vs with Some v => show_list show_Q (map (entry v) (seq 0 n)) | None => "refused" end.

Definition show_constant (c : option nat) : string := match c with Some c => show_nat c | None => "inf" end.
Definition show_stability (s : shape) : string := show_list show_constant (stability s).

(** Every transformation, with 3 for k and 2 and 3 for the rows of a join. *)
Definition stability_table : list (string * shape) := [
  ("Literal", Literal); ("Identity", Identity); ("Select", Select); ("Where", Where); ("Distinct", Distinct);
  ("SelectMany(3)", SelectMany 3); ("Take(3)", Take 3); ("GroupBy", GroupBy true Rows);
  ("GroupBy(key only)", GroupBy true Key); ("LimitPerKey(3)", LimitPerKey 3 SomeKey);
  ("LimitPerKey(3, whole record)", LimitPerKey 3 WholeRecord);
  ("UniqueBy", UniqueBy); ("Concat", Concat); ("Union(bag)", Union OfBags); ("Union(set)", Union OfSets);
  ("Intersect(bag)", Intersect OfBags); ("Intersect(set)", Intersect OfSets);
  ("Except(bag)", Except OfBags); ("Except(set)", Except OfSets); ("SemiJoin", SemiJoin true); ("AntiJoin", SemiJoin false);
  ("GroupJoin", GroupJoin Rows Rows); ("GroupJoin(left)", GroupJoin Rows Key); ("GroupJoin(keys)", GroupJoin Key Key);
  ("Join(first 2,first 3)", Join (First 2) Rows (First 3) Rows);
  ("Join(first 2 seen by key,first 3)", Join (First 2) Key (First 3) Rows);
  ("Join(first 2,unique)", Join (First 2) Rows Unique Rows);
  ("Join(first 2,all)", Join (First 2) Rows All Rows); ("Join(unique,first 3)", Join Unique Rows (First 3) Rows);
  ("Join(unique,unique)", Join Unique Rows Unique Rows); ("Join(unique,all)", Join Unique Rows All Rows);
  ("Join(all,first 3)", Join All Rows (First 3) Rows); ("Join(all,unique)", Join All Rows Unique Rows);
  ("Join(all,all)", Join All Rows All Rows); ("OuterJoin(first 2,first 3)", OuterJoin (First 2) Rows (First 3) Rows);
  ("Flatten(3)", Flatten 3)].

Definition show_table : string :=
  concat "; " (map (fun '(name, s) => name ++ "=" ++ show_stability s) stability_table).

(** Two parts queried at 1/10 and 1/5 cost the root 1/5, the larger; a price is
    known before it is paid; what does not fit changes nothing. *)
Example two_parts :
  session 1 [1#2] [Partition_ 0 2 1; Query_ 1 (1#10); Query_ 2 (1#5); Price_ 1 (1#5); Query_ 0 (2#5)] =
  "tau C=0,0,0 D=0,0,0 M=0; measured C=1/10,1/10,0 D=0,1/10,0 M=1/10; " ++
  "measured C=1/5,1/10,1/5 D=0,1/10,1/5 M=1/5; price 1/10 C=1/5,1/10,1/5 D=0,1/10,1/5 M=1/5; " ++
  "bottom C=1/5,1/10,1/5 D=0,1/10,1/5 M=1/5".
Proof. reflexivity. Qed.
