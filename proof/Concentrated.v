(** * Everything together, with budgets of both notions

    Bags, the registry of transformations, and queries asked at ε or at ρ, on roots
    whose budgets are an ε or a ρ: [model/books.py], with [kappa] of
    [model/notions.py].  Nothing is left to assume.

    - [bags_concentrated_spent], [bags_concentrated]: for each concentrated root,
      over databases that differ in one record of it, the traces of every program
      have Rényi divergences of at most a * budget at every integer order a, and
      of what was paid along them, after the event;
    - [bags_concentrated_dp]: so they are (ε, δ)-close for every set of traces, with
      δ = (a-1)^(a-1)/a^a * exp((a-1)(a * budget - ε)) for any integer a ≥ 2;
    - [bags_pure_beside]: pure roots are as private as without the others.

    - [bags_sessions_concentrated], [bags_sessions_concentrated_dp]: the same of all
      sessions together that share the budgets, as the ledger runs them.

    κ may be rounded up: [up].  What is asked at √(8ρ) may be rounded down: [eta]. *)

Require Import Reals Lra Lia List Arith ZArith.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Mechanisms Fpinq.Private Fpinq.Queries Fpinq.Closeness Fpinq.Hyperbolic
  Fpinq.Gaussian Fpinq.AtRho.
Require Import Fpinq.Sources Fpinq.Scale Fpinq.Books.
Require Fpinq.System Fpinq.General Fpinq.Events Fpinq.Instance Fpinq.SharedBooks.
Import ListNotations.
Import (coercions) Fpinq.System.
Open Scope R_scope.

Section Concentrated.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** ** What is asked, and what it costs *)

  Inductive asked := AtEpsilon (q : Mechanism (record := record) (list Z)) | AtRho (q : RhoMechanism (record := record) (list Z)).

  Definition drawn (q : asked) : R -> table -> list Z -> R :=
    match q with AtEpsilon q => mass _ q | AtRho q => rho_mass _ q end.

  Lemma drawn_distribution q e T : 0 < e -> distribution (drawn q e T).
  Proof. destruct q; [apply mass_distribution|apply rho_distribution]. Qed.

  Lemma drawn_same q e T U v : distance T U = 0%nat -> drawn q e T v = drawn q e U v.
  Proof. destruct q; [apply mass_same|apply rho_same]. Qed.

  Definition tables : System.Tables := Instance.tables_with asked drawn drawn_distribution drawn_same.

  Variable up : R -> R.
  Hypothesis up_above : forall x, x <= up x.

  (** Gaussian noise has no finite ε: at ρ no pure root can be asked. *)
  Definition kappa_of (n : notion) (q : asked) (e s : R) : option R :=
    match n, q with
    | Pure, AtEpsilon _ => Some e
    | Pure, AtRho _ => None
    | Concentrated, AtEpsilon _ => Some (up (e * tanh_above (e * s / 2)))
    | Concentrated, AtRho _ => Some (e * s)
    end.

  Lemma tanh_above_nonneg y : 0 <= y -> 0 <= tanh_above y.
  Proof. intros H. eapply Rle_trans; [apply (tanh_nonneg y H)|apply tanh_above_right, H]. Qed.

  Definition rates : Rates tables.
  Proof.
    refine {| kappa := kappa_of : notion -> System.mechanism tables -> R -> R -> option R |}.
    - intros [|] [q|q] e s k He Hs E; try discriminate E; injection E as <-; [lra| |apply Rmult_le_pos; lra].
      eapply Rle_trans; [|apply up_above]. apply Rmult_le_pos; [lra|]. apply tanh_above_nonneg.
      assert (0 <= e * s) by (apply Rmult_le_pos; lra). lra.
    - intros n q e s k T U He E Hd. change (System.distance tables T U) with (distance T U) in *.
      pose proof (pos_INR (distance T U)) as HD. set (D := INR (distance T U)) in *.
      destruct n, q as [q|q]; try discriminate; injection E as <-; intros o Ho; destruct o as [|a]; try contradiction.
      + intros v. apply (pure_at q e T U v He).
      + specialize (Hd eq_refl). simpl in Ho. apply (close_weaken (Order a) Ho (fun _ => e * D * tanh (e * D / 2))).
        * intros v. apply mass_distribution, He.
        * intros v. apply mass_distribution, He.
        * intros _. assert (0 <= e * D) by (apply Rmult_le_pos; lra).
          assert (e * D <= e * s) by (apply Rmult_le_compat_l; lra).
          pose proof (tanh_mono (e * D / 2) (e * s / 2) ltac:(lra)) as M.
          pose proof (tanh_above_right (e * s / 2) ltac:(lra)) as A.
          apply Rle_trans with (e * tanh_above (e * s / 2) * D).
          -- replace (e * tanh_above (e * s / 2) * D) with (e * D * tanh_above (e * s / 2)) by ring.
             apply Rmult_le_compat_l; lra.
          -- apply Rmult_le_compat_r; [exact HD|apply up_above].
        * apply (pure_close q e T U a He Ho).
      + specialize (Hd eq_refl). simpl in Ho. apply (close_weaken (Order a) Ho (fun _ => e * D ^ 2)).
        * intros v. apply rho_distribution, He.
        * intros v. apply rho_distribution, He.
        * intros _. replace (e * s * D) with (e * D * s) by ring. replace (e * D ^ 2) with (e * D * D) by ring.
          apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|lra].
        * apply (rho_close _ q e T U a He Ho).
  Defined.

  (** ** The books: one for the pure roots, one for each other *)

  Variables (roots : nat) (budget : vector) (notion_of : nat -> notion).
  Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.

  Definition book_of (x : nat) : nat := match notion_of x with Pure => 0%nat | Concentrated => S x end.
  Definition kind (b : nat) : notion := match b with 0%nat => Pure | S _ => Concentrated end.

  Variables (client : Client tables) (start : program tables client).
  Notation init := (init tables roots []).
  Notation seen n D := (probability tables rates roots budget book_of kind client n start (init D)).
  Definition paid_by (x : nat) (D : nat -> table) t : R :=
    counters (book tables (reached tables rates roots budget book_of kind client start (init D) t) (book_of x)) x.

  Lemma own_book x y : notion_of x = Concentrated -> own book_of (S x) y = Nat.eqb y x.
  Proof.
    intros Hx. unfold own, book_of. destruct (notion_of y) eqn:Hy.
    - destruct (Nat.eqb_spec y x) as [->|]; [congruence|]. reflexivity.
    - reflexivity.
  Qed.

  Lemma dot_single f d x n : (forall y, y <> x -> d y = 0) -> dot n f d = if Nat.ltb x n then f x * d x else 0.
  Proof.
    intros H. induction n as [|n IH]; simpl; [destruct (Nat.ltb_spec x 0); [lia|reflexivity]|]. rewrite IH.
    destruct (Nat.ltb_spec x n), (Nat.ltb_spec x (S n)); try lia; try ring.
    - rewrite (H n) by lia. ring.
    - replace n with x by lia. ring.
    - rewrite (H n) by lia. ring.
  Qed.

  Section Root.
    Variables (x : nat) (D D' : nat -> table).
    Hypothesis x_in : (x < roots)%nat.
    Hypothesis x_concentrated : notion_of x = Concentrated.
    Hypothesis one_record : (distance (D x) (D' x) <= 1)%nat.
    Hypothesis others_equal : forall y, y <> x -> D y = D' y.

    Notation d := (General.root_distances tables D D').

    Lemma d_other y : y <> x -> d y = 0.
    Proof.
      intros H. unfold General.root_distances. rewrite (others_equal y H).
      change (System.distance tables (D' y) (D' y)) with (distance (D' y) (D' y)). rewrite distance_refl. reflexivity.
    Qed.

    Lemma d_one : 0 <= d x <= 1.
    Proof. split; [apply pos_INR|]. apply le_INR in one_record. exact one_record. Qed.

    Lemma about_root : about roots book_of kind (S x) d.
    Proof.
      pose proof d_one. split.
      - intros y _ H1. rewrite (own_book x y x_concentrated) in H1. apply d_other. apply Nat.eqb_neq, H1.
      - intros _. rewrite (dot_single _ _ x roots d_other). destruct (Nat.ltb x roots); lra.
    Qed.

    Lemma used_book : exists y, (y < roots)%nat /\ own book_of (S x) y = true.
    Proof. exists x. split; [exact x_in|]. rewrite (own_book x x x_concentrated). apply Nat.eqb_refl. Qed.

    (** After the event: what the root paid along the trace, if the databases
        differ at all. *)
    Theorem bags_concentrated_spent n a : (0 < a)%nat ->
      close (Order a) (fun t => if Nat.eqb (length t) n then paid_by x D t * INR (distance (D x) (D' x)) else 0)
        (seen n D) (seen n D').
    Proof.
      intros Ha. pose proof (books_alike tables rates roots budget book_of kind client [] budget_nonneg (S x) n start D D'
        used_book about_root (Order a) Ha) as K. revert K. apply (close_ext (Order a) Ha); auto.
      intros t. destruct (Nat.eqb (length t) n); auto. unfold paid. rewrite (dot_single _ _ x roots d_other).
      destruct (Nat.ltb_spec x roots); [|lia]. unfold paid_by, book_of. rewrite x_concentrated. reflexivity.
    Qed.

    (** By the budget: the Rényi divergence of order a is at most a * budget. *)
    Theorem bags_concentrated n a : (0 < a)%nat -> close (Order a) (fun _ => budget x) (seen n D) (seen n D').
    Proof.
      intros Ha. pose proof d_one as Hd.
      apply (close_weaken (Order a) Ha (fun _ => dot roots budget d)).
      - apply probability_nonneg.
      - apply probability_nonneg.
      - intros _. rewrite (dot_single _ _ x roots d_other). pose proof (budget_nonneg x x_in).
        destruct (Nat.ltb x roots); [|assumption]. assert (budget x * d x <= budget x * 1) by (apply Rmult_le_compat_l; lra). lra.
      - exact (books_within tables rates roots budget book_of kind client [] budget_nonneg (S x) n start D D'
          used_book about_root (Order a) Ha).
    Qed.

    (** Every set of traces, every ε, every integer order a ≥ 2. *)
    Theorem bags_concentrated_dp n a e event u v : (1 < a)%nat ->
      Events.chance_of (seen n D) event u -> Events.chance_of (seen n D') event v ->
      u <= exp e * v + delta_at a (budget x) e.
    Proof.
      intros Ha [_ Hu] [Hv _]. apply Hu. intros r (l & N & Hl & ->).
      eapply Rle_trans; [apply (convert a (seen n D) (seen n D') (budget x) e l Ha); auto using probability_nonneg|].
      - apply bags_concentrated. lia.
      - apply Rplus_le_compat_r, Rmult_le_compat_l; [left; apply exp_pos|]. apply Hv. exists l. auto.
    Qed.
  End Root.

  (** ** The pure roots, beside the others *)

  Theorem bags_pure_beside n D D' t : (exists x, (x < roots)%nat /\ notion_of x = Pure) ->
    (forall x, notion_of x = Concentrated -> D x = D' x) ->
    seen n D t <= seen n D' t * exp (dot roots budget (fun x => INR (distance (D x) (D' x)))).
  Proof.
    intros (x & Hx & Hn) HD.
    assert (Hu : exists y, (y < roots)%nat /\ own book_of 0 y = true).
    { exists x. split; [exact Hx|]. unfold own, book_of. rewrite Hn. reflexivity. }
    assert (Ha : about roots book_of kind 0 (General.root_distances tables D D')).
    { split; [|discriminate]. intros y _ Ho. unfold own, book_of in Ho. destruct (notion_of y) eqn:Hy; [discriminate|].
      unfold General.root_distances. rewrite (HD y Hy). change (System.distance tables (D' y) (D' y)) with (distance (D' y) (D' y)).
      rewrite distance_refl. reflexivity. }
    exact (books_within tables rates roots budget book_of kind client [] budget_nonneg 0 n start D D' Hu Ha Worst I t).
  Qed.

  (** ** Sessions that share the budgets *)

  Section Sessions.
    Import SharedBooks.
    Variables (m : nat) (grain : R) (at_most : Public -> nat -> vector) (scheduler : Scheduler tables).
    Hypothesis grain_pos : 0 < grain.
    Notation allowed := (left_in_books m budget book_of grain at_most).
    Notation together n p D := (chance tables rates roots m book_of kind allowed scheduler D n p (nothing tables roots [])).

    Variables (x : nat) (D D' : Data tables scheduler).
    Hypothesis x_in : (x < roots)%nat.
    Hypothesis x_concentrated : notion_of x = Concentrated.
    Hypothesis one_record : forall p, (distance (D p x) (D' p x) <= 1)%nat.
    Hypothesis others_equal : forall p y, y <> x -> D p y = D' p y.

    (** One record of one root, which may arrive at any time. *)
    Theorem bags_sessions_concentrated n p a : (0 < a)%nat ->
      close (Order a) (fun _ => budget x) (together n p D) (together n p D').
    Proof.
      intros Ha. assert (U : forall y, y <> x -> unit x y = 0) by (intros y; apply unit_other).
      assert (E : dot roots budget (unit x) = budget x).
      { rewrite (dot_single _ _ x roots U). destruct (Nat.ltb_spec x roots); [|lia]. unfold unit. rewrite Nat.eqb_refl. ring. }
      pose proof (shared_within tables rates roots m budget book_of kind [] allowed
        (left_in_books_respects roots m budget book_of grain at_most grain_pos) scheduler (S x) (used_book x x_in x_concentrated)
        D D' (unit x)) as K. rewrite E in K. apply (fun H1 H2 H3 => K H1 H2 H3 budget_nonneg n p (Order a) Ha).
      - apply unit_nonneg.
      - split.
        + intros y _ H1. rewrite (own_book x y x_concentrated) in H1. apply U, Nat.eqb_neq, H1.
        + intros _. rewrite (dot_single _ _ x roots U). destruct (Nat.ltb x roots); [|lra]. unfold unit. rewrite Nat.eqb_refl. lra.
      - intros q y _. change (System.distance tables (D q y) (D' q y)) with (distance (D q y) (D' q y)).
        destruct (Nat.eq_dec y x) as [->|N].
        + unfold unit. rewrite Nat.eqb_refl. apply (le_INR _ 1), one_record.
        + rewrite (others_equal q y N), distance_refl. apply unit_nonneg.
    Qed.

    (** Whatever the sessions draw in n steps is drawn beforehand, from any set of
        seeds with any weights. *)
    Theorem bags_sessions_concentrated_random_dp n a e {seed} (dec : forall r s : seed, {r = s} + {r <> s}) (weight : seed -> R)
        (start_with : seed -> all tables scheduler) event u v : (1 < a)%nat ->
      (forall s, 0 <= weight s) -> (forall l, NoDup l -> sum weight l <= 1) ->
      Events.chance_of (fun x => weight (fst x) * together n (start_with (fst x)) D (snd x)) event u ->
      Events.chance_of (fun x => weight (fst x) * together n (start_with (fst x)) D' (snd x)) event v ->
      u <= exp e * v + delta_at a (budget x) e.
    Proof.
      intros Ha Hw H1 Hu Hv. refine (Events.chance_mixture dec weight (fun s => together n (start_with s) D)
        (fun s => together n (start_with s) D') e (delta_at a (budget x) e) Hw H1 (delta_at_nonneg a _ _ Ha) _ event u v Hu Hv).
      intros s l N. apply (convert a _ _ (budget x) e l Ha); auto.
      - intros t. apply shared_sum_to_one.
      - intros t. apply shared_sum_to_one.
      - apply bags_sessions_concentrated. lia.
    Qed.

    Theorem bags_sessions_concentrated_dp n p a e event u v : (1 < a)%nat ->
      Events.chance_of (together n p D) event u -> Events.chance_of (together n p D') event v ->
      u <= exp e * v + delta_at a (budget x) e.
    Proof.
      intros Ha [_ Hu] [Hv _]. apply Hu. intros r (l & N & Hl & ->).
      eapply Rle_trans; [apply (convert a (together n p D) (together n p D') (budget x) e l Ha); auto|].
      - intros t. apply shared_sum_to_one.
      - intros t. apply shared_sum_to_one.
      - apply bags_sessions_concentrated. lia.
      - apply Rplus_le_compat_r, Rmult_le_compat_l; [left; apply exp_pos|]. apply Hv. exists l. auto.
    Qed.
  End Sessions.

  Theorem bags_books_sum_to_one n D : distribution (seen n D).
  Proof. apply traces_sum_to_one. Qed.
End Concentrated.

(** ** An example

    One root with a budget in ρ, counted again and again at e. *)

Section Example.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).
  Variables (up eta : R -> R) (up_above : forall x, x <= up x).
  Hypothesis eta_pos : forall e, 0 < e -> 0 < eta e.
  Hypothesis eta_below : forall e, 0 < e -> eta e ^ 2 <= 8 * e.
  Variables (e b : R).
  Hypothesis e_pos : 0 < e.

  Let count : asked (record := record) := AtRho (at_rho eta eta_pos eta_below Count).
  Let notion_of (_ : nat) : notion := Concentrated.

  Definition counting : Client (tables (record := record)) :=
    {| program := Datatypes.unit; does := fun _ => Query tables 0 Instance.Whole [count] e; told := fun _ _ => tt |}.

  Notation seen n D := (probability tables (rates up up_above) 1 (fun _ => b) (book_of notion_of) kind counting n tt (init tables 1 [] D)).

  Lemma counted_reach D : reach 1 (book_of notion_of) 1 (book tables (init tables 1 [] D) 1) (sensitivity_of tables (init tables 1 [] D) 0) = 1.
  Proof.
    unfold reach. cbn. unfold price, charge, unit. cbn. unfold Rmax. destruct (Rle_dec _ _); lra.
  Qed.

  Lemma counted_rate D : rate tables (rates up up_above) 1 (book_of notion_of) kind (init tables 1 [] D) 1
    (sensitivity_of tables (init tables 1 [] D) 0) [count] e = Some e.
  Proof.
    unfold rate. rewrite counted_reach. destruct (Req_EM_T 1 0); [lra|]. cbn. rewrite Rmult_1_r, Rmax_left by lra. reflexivity.
  Qed.

  Lemma counted_fits D : within 1 (fun _ => b) (book_of notion_of) (charged tables (rates up up_above) 1 (book_of notion_of) kind
    (init tables 1 [] D) (sensitivity_of tables (init tables 1 [] D) 0) [count] e) = if Rle_dec e b then true else false.
  Proof.
    unfold within. cbn [seq forallb]. change (book_of notion_of 0) with 1%nat. unfold charged, rate_or_0. rewrite counted_rate.
    unfold charge. cbn. unfold unit. cbn. replace (0 + 1 * e) with e by ring. destruct (Rle_dec e b); reflexivity.
  Qed.

  Lemma counted_may D : may_ask tables (rates up up_above) 1 (book_of notion_of) kind (init tables 1 [] D)
    (sensitivity_of tables (init tables 1 [] D) 0) [count] e = true.
  Proof. unfold may_ask. cbn [seq forallb]. change (book_of notion_of 0) with 1%nat. rewrite counted_rate. reflexivity. Qed.

  (** Within the budget it sees the number of records, plus Gaussian noise of σ² = 1/(2e). *)
  Example counted_at_rho D (H : 0 < e / 1) v : e <= b ->
    seen 1 D [General.Answers tables [[v]]] = gaussian (e / 1) H (Z.of_nat (length (D 0%nat))) v.
  Proof.
    intros Hb. cbn [probability]. unfold reply. cbn [does counting step]. destruct (Rlt_dec 0 e); [|contradiction].
    rewrite counted_may. cbv zeta. rewrite counted_fits. destruct (Rle_dec e b); [|contradiction]. cbn [fst General.chances System.parallel].
    change (System.mass tables count e (System.part tables Instance.Whole 0 (table_of tables (init tables 1 [] D) 0)) [v]) with
      (rho_mass _ (at_rho eta eta_pos eta_below Count) e (D 0%nat) [v]).
    rewrite (noise_at_rho eta eta_pos eta_below Count 1 e H (D 0%nat) [v] eq_refl). cbn [coordinates measure map gaussians].
    rewrite Instance.sum_of_ones. ring.
  Qed.

  (** Beyond it, ⊥. *)
  Example counted_beyond D : b < e -> seen 1 D [General.Bottom tables] = 1.
  Proof.
    intros Hb. cbn [probability]. unfold reply. cbn [does counting step]. destruct (Rlt_dec 0 e); [|contradiction].
    rewrite counted_may. cbv zeta. rewrite counted_fits. destruct (Rle_dec e b); [lra|]. cbn [fst General.chances]. unfold certain.
    destruct (General.observation_dec _ _ _); [ring|congruence].
  Qed.
End Example.
