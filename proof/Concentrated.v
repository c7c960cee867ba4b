(** * Everything together, with budgets of both notions

    Bags, the registry of transformations, and queries asked at ε or at ρ, among
    them those that find keys and spend a δ, on roots
    whose budgets are an ε or a ρ, with a δ for keys or without: [model/books.py],
    with [kappa] of [model/notions.py].  Nothing is left to assume.

    - [bags_nearly], [bags_keys_dp]: a root with a δ for keys is (ε, δ)-private: the
      traces are, but for its δ, as close as its budget;

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
  Fpinq.Approximate Fpinq.Gaussian Fpinq.AtRho Fpinq.Discovery.
Require Import Fpinq.Sources Fpinq.Scale Fpinq.Books.
Require Fpinq.System Fpinq.General Fpinq.Events Fpinq.Instance Fpinq.SharedBooks.
Import ListNotations.
Import (coercions) Fpinq.System.
Open Scope R_scope.

Section Concentrated.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).

  (** ** What is asked, and what it costs *)

  Inductive asked :=
    | AtEpsilon (q : Mechanism (record := record) (list Z))
    | AtRho (q : RhoMechanism (record := record) (list Z))
    | KeysAtEpsilon (q : Stable (record := record))
    | KeysAtRho (q : Stable (record := record)).

  Definition histogram (q : Stable (record := record)) (noisy_count : Z -> Z -> R) : table -> list Z -> R :=
    stable_law (counted q) (threshold q) (shown_of q) noisy_count.
  Definition part_of (q : Stable (record := record)) (noisy_count : Z -> Z -> R) : table -> table -> list Z -> R :=
    stable_core (counted q) (threshold q) (shown_of q) noisy_count.

  Definition drawn (q : asked) : R -> table -> list Z -> R :=
    match q with
    | AtEpsilon q => mass _ q
    | AtRho q => rho_mass _ q
    | KeysAtEpsilon q => fun e => histogram q (laplace_count q e)
    | KeysAtRho q => fun e => histogram q (gaussian_count q e)
    end.

  Definition drawn_core (q : asked) (e : R) (T U : table) : list Z -> R :=
    match q with
    | KeysAtEpsilon q => part_of q (laplace_count q e) T U
    | KeysAtRho q => part_of q (gaussian_count q e) T U
    | q => drawn q e T
    end.

  Lemma drawn_distribution q e T : 0 < e -> distribution (drawn q e T).
  Proof.
    intros He. destruct q; [apply mass_distribution, He|apply rho_distribution, He|..]; apply stable_distribution; intros c;
      [apply laplace_counts, He|apply gaussian_counts, He].
  Qed.

  Lemma drawn_same q e T U v : distance T U = 0%nat -> drawn q e T v = drawn q e U v.
  Proof. destruct q; [apply mass_same|apply rho_same|apply stable_same|apply stable_same]. Qed.

  Lemma drawn_core_distribution q e T U : 0 < e -> distribution (drawn_core q e T U).
  Proof.
    intros He. destruct q; [apply mass_distribution, He|apply rho_distribution, He|..]; apply stable_core_distribution; intros c;
      [apply laplace_counts, He|apply gaussian_counts, He].
  Qed.

  Lemma drawn_core_same q e T U v : distance T U = 0%nat -> drawn_core q e T U v = drawn q e T v.
  Proof. intros H. destruct q; auto; apply core_all, H. Qed.

  Definition tables : System.Tables := Instance.tables_with asked drawn drawn_distribution drawn_same.

  Variable up : R -> R.
  Hypothesis up_above : forall x, x <= up x.

  (** What is asked at ε, or at ρ.  Gaussian noise has no finite ε: at ρ no pure
      root can be asked. *)
  Definition at_epsilon (q : asked) : bool := match q with AtEpsilon _ | KeysAtEpsilon _ => true | _ => false end.
  Definition kappa_at (n : notion) (epsilon : bool) (e s : R) : option R :=
    match n, epsilon with
    | Pure, true => Some e
    | Pure, false => None
    | Concentrated, true => Some (up (e * tanh_above (e * s / 2)))
    | Concentrated, false => Some (e * s)
    end.

  (** A threshold that is too low for the scale of the table is refused. *)
  Definition right_for (q : asked) (e s : R) : bool :=
    match q with
    | KeysAtEpsilon q => safe q (laplace_count q e) s
    | KeysAtRho q => safe q (gaussian_count q e) s
    | _ => true
    end.

  Definition kappa_of (n : notion) (q : asked) (e s : R) : option R :=
    if right_for q e s then kappa_at n (at_epsilon q) e s else None.

  Definition spends_of (q : asked) : R := match q with KeysAtEpsilon q | KeysAtRho q => delta_of q | _ => 0 end.

  Lemma drawn_core_below q e s T U v : 0 < e -> right_for q e s = true -> (spends_of q = 0 \/ INR (distance T U) <= s) ->
    (1 - spends_of q * INR (distance T U)) * drawn_core q e T U v <= drawn q e T v.
  Proof.
    intros He R Hs. destruct q as [q|q|q|q]; cbn [spends_of drawn_core drawn right_for] in *; try lra;
      pose proof (delta_positive q) as P; destruct Hs as [E|Hs]; try lra;
      apply (stable_below (counted q) (threshold q) (delta_of q) (shown_of q) (Rlt_le _ _ P)) with s; auto using safe_right; intros c.
    - apply laplace_counts, He.
    - apply gaussian_counts, He.
  Qed.

  (** The loss at distance D in a concentrated book. *)
  Definition lost (q : asked) (e D : R) : R := if at_epsilon q then e * D * tanh (e * D / 2) else e * D ^ 2.

  Lemma drawn_core_concentrated q e T U a : 0 < e -> (0 < a)%nat ->
    close (Order a) (fun _ => lost q e (INR (distance T U))) (drawn_core q e T U) (drawn_core q e U T).
  Proof.
    intros He Ha. destruct q as [q|q|q|q]; cbn [drawn_core drawn]; unfold lost; cbn [at_epsilon].
    - apply (pure_close q e T U a He Ha).
    - apply (rho_close _ q e T U a He Ha).
    - apply (laplace_core_concentrated q e T U a He Ha).
    - apply (gaussian_core_close q e T U a He Ha).
  Qed.

  Lemma tanh_above_nonneg y : 0 <= y -> 0 <= tanh_above y.
  Proof. intros H. eapply Rle_trans; [apply (tanh_nonneg y H)|apply tanh_above_right, H]. Qed.

  Lemma kappa_right n q e s k : kappa_of n q e s = Some k -> right_for q e s = true /\ kappa_at n (at_epsilon q) e s = Some k.
  Proof. unfold kappa_of. destruct (right_for q e s); [auto|discriminate]. Qed.

  Lemma drawn_core_alike n q e s k T U : 0 < e -> kappa_of n q e s = Some k -> (n = Concentrated -> INR (distance T U) <= s) ->
    alike n (fun _ => k * INR (distance T U)) (drawn_core q e T U) (drawn_core q e U T).
  Proof.
    intros He E Hd. apply kappa_right in E. destruct E as [_ E]. pose proof (pos_INR (distance T U)) as HD. set (D := INR (distance T U)) in *.
    intros o Ho. destruct n, o as [|a]; try contradiction.
    - destruct q as [q|q|q|q]; try discriminate; injection E as <-.
      + intros v. apply (pure_at q e T U v He).
      + apply (laplace_core_close q e T U He).
    - specialize (Hd eq_refl). simpl in Ho. apply (close_weaken (Order a) Ho (fun _ => lost q e D)).
      + apply drawn_core_distribution, He.
      + apply drawn_core_distribution, He.
      + intros _. unfold lost. assert (0 <= e * D) by (apply Rmult_le_pos; lra).
        assert (e * D <= e * s) by (apply Rmult_le_compat_l; lra). destruct (at_epsilon q); injection E as <-.
        * pose proof (tanh_mono (e * D / 2) (e * s / 2) ltac:(lra)) as M.
          pose proof (tanh_above_right (e * s / 2) ltac:(lra)) as A.
          apply Rle_trans with (e * tanh_above (e * s / 2) * D).
          -- replace (e * tanh_above (e * s / 2) * D) with (e * D * tanh_above (e * s / 2)) by ring.
             apply Rmult_le_compat_l; lra.
          -- apply Rmult_le_compat_r; [exact HD|apply up_above].
        * replace (e * s * D) with (e * D * s) by ring. replace (e * D ^ 2) with (e * D * D) by ring.
          apply Rmult_le_compat_l; lra.
      + apply drawn_core_concentrated; assumption.
  Qed.

  Definition rates : Rates tables.
  Proof.
    refine {| kappa := kappa_of : notion -> System.mechanism tables -> R -> R -> option R;
      spends := spends_of : System.mechanism tables -> R;
      core := drawn_core : System.mechanism tables -> R -> System.table tables -> System.table tables -> System.answer tables -> R |}.
    - intros n q e s k He Hs E. apply kappa_right in E. destruct E as [_ E].
      destruct n, (at_epsilon q); try discriminate E; injection E as <-; [lra| |apply Rmult_le_pos; lra].
      eapply Rle_trans; [|apply up_above]. apply Rmult_le_pos; [lra|]. apply tanh_above_nonneg.
      assert (0 <= e * s) by (apply Rmult_le_pos; lra). lra.
    - intros q. destruct q as [q|q|q|q]; simpl; try lra; left; apply delta_positive.
    - intros q e T U He. apply drawn_core_distribution, He.
    - intros q e T U v H. change (distance T U = 0%nat) in H. split; apply drawn_core_same; [exact H|rewrite distance_sym; exact H].
    - intros n q e s k T U v He E Hs. apply kappa_right in E. destruct E as [E _].
      change (System.distance tables T U) with (distance T U) in *. split; [apply (drawn_core_below q e s T U v He E Hs)|].
      rewrite (distance_sym T U) in *. apply (drawn_core_below q e s U T v He E Hs).
    - intros n q e s k T U He E Hd. change (System.distance tables T U) with (distance T U) in *. split.
      + apply (drawn_core_alike n q e s k T U He E Hd).
      + rewrite (distance_sym T U) in *. apply (drawn_core_alike n q e s k U T He E Hd).
  Defined.

  (** ** The books: one for the pure roots, one for each other, and one for each δ *)

  Variables (roots : nat) (budget keys_budget : vector) (notion_of : nat -> notion) (has_keys : nat -> bool).
  Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.
  Hypothesis keys_nonneg : forall x, (x < roots)%nat -> 0 <= keys_budget x.

  (** Root x has the book 1 + x, and in δ the one 1 + roots + x. *)
  Definition book_of (x : nat) : nat := match notion_of x with Pure => 0%nat | Concentrated => S x end.
  Definition keys_of (x : nat) : option nat := if has_keys x then Some (S (roots + x)) else None.
  Definition kind (b : nat) : purpose :=
    match b with 0%nat => Loss Pure | S x => if Nat.ltb x roots then Loss Concentrated else Keys end.
  Definition budgets (b x : nat) : R := match kind b with Loss _ => budget x | Keys => keys_budget x end.

  Lemma budgets_nonneg b x : (x < roots)%nat -> 0 <= budgets b x.
  Proof. intros H. unfold budgets. destruct (kind b); auto. Qed.

  Variables (client : Client tables) (start : program tables client).
  Notation init := (init tables roots []).
  Notation seen n D := (probability tables rates roots budgets book_of keys_of kind client n start (init D)).
  Definition paid_by (x : nat) (D : nat -> table) t : R :=
    counters (book tables (reached tables rates roots budgets book_of keys_of kind client start (init D) t) (book_of x)) x.

  Lemma kind_of x : (x < roots)%nat -> kind (book_of x) = Loss (notion_of x).
  Proof.
    intros H. unfold book_of. destruct (notion_of x); simpl; auto. destruct (Nat.ltb_spec x roots); [reflexivity|lia].
  Qed.

  Lemma kind_keys x : kind (S (roots + x)) = Keys.
  Proof. simpl. destruct (Nat.ltb_spec (roots + x) roots); [lia|reflexivity]. Qed.

  Lemma budget_of x : (x < roots)%nat -> budgets (book_of x) = budget.
  Proof. intros H. unfold budgets. rewrite (kind_of x H). reflexivity. Qed.

  Lemma own_loss x y : (x < roots)%nat -> (y < roots)%nat -> own book_of keys_of (book_of x) y = Nat.eqb (book_of x) (book_of y).
  Proof.
    intros Hx Hy. unfold own, books_of. cbn [existsb]. destruct (Nat.eqb (book_of x) (book_of y)); auto.
    unfold keys_of. destruct (has_keys y); auto. cbn [existsb]. destruct (Nat.eqb_spec (book_of x) (S (roots + y))) as [E|]; auto.
    exfalso. unfold book_of in E. destruct (notion_of x); [discriminate|]. lia.
  Qed.

  Lemma own_keys x y : has_keys x = true -> (x < roots)%nat -> (y < roots)%nat -> own book_of keys_of (S (roots + x)) y = Nat.eqb x y.
  Proof.
    intros Hk Hx Hy. unfold own, books_of. cbn [existsb].
    assert (N : Nat.eqb (S (roots + x)) (book_of y) = false).
    { apply Nat.eqb_neq. unfold book_of. destruct (notion_of y); lia. }
    rewrite N. unfold keys_of. destruct (Nat.eqb_spec x y) as [<-|Ne].
    - rewrite Hk. cbn [existsb]. rewrite Nat.eqb_refl. reflexivity.
    - destruct (has_keys y); auto. cbn [existsb]. destruct (Nat.eqb_spec (S (roots + x)) (S (roots + y))); [lia|reflexivity].
  Qed.

  Lemma dot_single f d x n : (forall y, y <> x -> d y = 0) -> dot n f d = if Nat.ltb x n then f x * d x else 0.
  Proof.
    intros H. induction n as [|n IH]; simpl; [destruct (Nat.ltb_spec x 0); [lia|reflexivity]|]. rewrite IH.
    destruct (Nat.ltb_spec x n), (Nat.ltb_spec x (S n)); try lia; try ring.
    - rewrite (H n) by lia. ring.
    - replace n with x by lia. ring.
    - rewrite (H n) by lia. ring.
  Qed.

  (** One record of one root. *)
  Section Single.
    Variables (x : nat) (d : vector).
    Hypothesis x_in : (x < roots)%nat.
    Hypothesis d_other : forall y, y <> x -> d y = 0.
    Hypothesis d_one : 0 <= d x <= 1.

    Lemma about_single b : (b = book_of x \/ keys_of x = Some b) -> about roots book_of keys_of kind b d.
    Proof.
      intros Hb. split.
      - intros y Hy Ho. destruct (Nat.eq_dec y x) as [->|N]; [|apply d_other, N]. exfalso. unfold own, books_of in Ho. cbn [existsb] in Ho.
        destruct Hb as [->|Hb]; [rewrite Nat.eqb_refl in Ho; discriminate|]. rewrite Hb in Ho. cbn [existsb] in Ho.
        rewrite Nat.eqb_refl, Bool.orb_true_r in Ho. discriminate.
      - intros _. rewrite (dot_single _ _ x roots d_other). destruct (Nat.ltb x roots); lra.
    Qed.

    Lemma reach_single : within_reach roots book_of keys_of kind (book_of x) (keys_of x) d.
    Proof.
      split; [apply about_single; left; reflexivity|]. destruct (keys_of x) as [c|] eqn:E.
      - split; [|apply about_single; right; exact E]. unfold keys_of in E. destruct (has_keys x); [|discriminate]. injection E as <-. apply kind_keys.
      - intros y _ H. apply d_other. intros ->. contradiction.
    Qed.

    (** Its δ for keys, 0 if it has none. *)
    Definition keys_delta : R := if has_keys x then keys_budget x else 0.

    Lemma keys_delta_nonneg : 0 <= keys_delta.
    Proof. unfold keys_delta. destruct (has_keys x); [auto|lra]. Qed.

    Lemma keys_delta_total : match keys_of x with Some c => dot roots (budgets c) d | None => 0 end <= keys_delta.
    Proof.
      unfold keys_of, keys_delta. destruct (has_keys x); [|lra]. rewrite (dot_single _ _ x roots d_other). unfold budgets. rewrite kind_keys.
      pose proof (keys_nonneg x x_in). destruct (Nat.ltb x roots); [|assumption].
      assert (keys_budget x * d x <= keys_budget x * 1) by (apply Rmult_le_compat_l; lra). lra.
    Qed.

    Lemma budget_single : dot roots (budgets (book_of x)) d <= budget x.
    Proof.
      rewrite (budget_of x x_in), (dot_single _ _ x roots d_other). pose proof (budget_nonneg x x_in).
      destruct (Nat.ltb x roots); [|assumption]. assert (budget x * d x <= budget x * 1) by (apply Rmult_le_compat_l; lra). lra.
    Qed.

    Lemma used_single : exists y, (y < roots)%nat /\ book_of y = book_of x.
    Proof. exists x. auto. Qed.
  End Single.

  Section Root.
    Variables (x : nat) (D D' : nat -> table).
    Hypothesis x_in : (x < roots)%nat.
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

    (** Of any notion, with a δ or without: but for its δ, as close as its budget. *)
    Theorem bags_nearly n : nearly (notion_of x) (fun _ => budget x) (keys_delta x) (seen n D) (seen n D').
    Proof.
      eapply nearly_weaken; [intros t; apply (budget_single x d x_in d_other d_one)|apply (keys_delta_total x d x_in d_other d_one)|].
      exact (books_within_nearly tables rates roots budgets book_of keys_of kind client [] budgets_nonneg (book_of x) (notion_of x) (keys_of x) n start D D'
        (kind_of x x_in) (used_single x x_in) (reach_single x d d_other d_one)).
    Qed.

    (** A root with an ε and a δ for keys is (ε, δ)-private, for every set of traces. *)
    Theorem bags_keys_dp n event u v : notion_of x = Pure ->
      Events.chance_of (seen n D) event u -> Events.chance_of (seen n D') event v -> u <= exp (budget x) * v + keys_delta x.
    Proof.
      intros Hn [_ Hu] [Hv _]. apply Hu. intros r (l & N & Hl & ->). pose proof (bags_nearly n) as K. rewrite Hn in K.
      eapply Rle_trans; [apply (nearly_pure (list_eq_dec (General.observation_dec tables)) (seen n D) (seen n D') (budget x) (keys_delta x) l);
        auto using traces_sum_to_one, keys_delta_nonneg|].
      apply Rplus_le_compat_r, Rmult_le_compat_l; [left; apply exp_pos|]. apply Hv. exists l. auto.
    Qed.

    (** A root with a ρ: for every ε, every integer order a ≥ 2. *)
    Theorem bags_concentrated_dp n a e event u v : notion_of x = Concentrated -> (1 < a)%nat ->
      Events.chance_of (seen n D) event u -> Events.chance_of (seen n D') event v ->
      u <= exp e * v + (keys_delta x + delta_at a (budget x) e).
    Proof.
      intros Hn Ha [_ Hu] [Hv _]. apply Hu. intros r (l & N & Hl & ->). pose proof (bags_nearly n) as K. rewrite Hn in K.
      eapply Rle_trans; [apply (nearly_converted (list_eq_dec (General.observation_dec tables)) (seen n D) (seen n D') a (budget x) e (keys_delta x) l);
        auto using traces_sum_to_one, keys_delta_nonneg|].
      apply Rplus_le_compat_r, Rmult_le_compat_l; [left; apply exp_pos|]. apply Hv. exists l. auto.
    Qed.

    Hypothesis x_concentrated : notion_of x = Concentrated.
    Hypothesis no_keys : has_keys x = false.

    Lemma reach_without : within_reach roots book_of keys_of kind (book_of x) None d.
    Proof.
      pose proof (reach_single x d d_other d_one) as K. replace (keys_of x) with (@None nat) in K; [exact K|]. unfold keys_of.
      rewrite no_keys. reflexivity.
    Qed.

    (** Without a δ, after the event: what the root paid along the trace, if the
        databases differ at all. *)
    Theorem bags_concentrated_spent n a : (0 < a)%nat ->
      close (Order a) (fun t => if Nat.eqb (length t) n then paid_by x D t * INR (distance (D x) (D' x)) else 0)
        (seen n D) (seen n D').
    Proof.
      intros Ha. pose proof (kind_of x x_in) as Hk. rewrite x_concentrated in Hk.
      pose proof (books_alike tables rates roots budgets book_of keys_of kind client [] budgets_nonneg (book_of x) Concentrated n start D D'
        Hk (used_single x x_in) reach_without (Order a) Ha) as K. revert K. apply (close_ext (Order a) Ha); auto.
      intros t. destruct (Nat.eqb (length t) n); auto. unfold paid. rewrite (dot_single _ _ x roots d_other).
      destruct (Nat.ltb_spec x roots); [|lia]. reflexivity.
    Qed.

    (** By the budget: the Rényi divergence of order a is at most a * budget. *)
    Theorem bags_concentrated n a : (0 < a)%nat -> close (Order a) (fun _ => budget x) (seen n D) (seen n D').
    Proof.
      intros Ha. pose proof (bags_nearly n) as K. rewrite x_concentrated in K. unfold keys_delta in K. rewrite no_keys in K.
      apply (nearly_exact (list_eq_dec (General.observation_dec tables)) _ _ _ _ (traces_sum_to_one _ _ _ _ _ _ _ _ n start (init D))
        (traces_sum_to_one _ _ _ _ _ _ _ _ n start (init D')) K (Order a) Ha).
    Qed.
  End Root.

  (** ** The pure roots without a δ, beside the others: any number of records of each *)

  Theorem bags_pure_beside n D D' t : (exists x, (x < roots)%nat /\ notion_of x = Pure) ->
    (forall x, notion_of x = Concentrated \/ has_keys x = true -> D x = D' x) ->
    seen n D t <= seen n D' t * exp (dot roots budget (fun x => INR (distance (D x) (D' x)))).
  Proof.
    intros (x & Hx & Hn) HD.
    assert (Z : forall y, D y = D' y -> General.root_distances tables D D' y = 0).
    { intros y E. unfold General.root_distances. rewrite E. change (System.distance tables (D' y) (D' y)) with (distance (D' y) (D' y)).
      rewrite distance_refl. reflexivity. }
    assert (B : book_of x = 0%nat) by (unfold book_of; rewrite Hn; reflexivity).
    assert (Hr : within_reach roots book_of keys_of kind 0 None (General.root_distances tables D D')).
    { split; [split|].
      - intros y Hy Ho. apply Z, HD. left. rewrite <- B, (own_loss x y Hx Hy), B in Ho. unfold book_of in Ho. destruct (notion_of y); [discriminate|reflexivity].
      - intros K. exfalso. apply K. reflexivity.
      - intros y _ Hy. apply Z, HD. right. unfold keys_of in Hy. destruct (has_keys y); congruence. }
    exact (books_within tables rates roots budgets book_of keys_of kind client [] budgets_nonneg 0 Pure n start D D' eq_refl
      (ex_intro _ x (conj Hx B)) Hr Worst I t).
  Qed.

  (** ** Sessions that share the budgets *)

  Section Sessions.
    Import SharedBooks.
    Variables (m : nat) (grain : R) (at_most : Public -> nat -> nat -> vector) (scheduler : Scheduler tables).
    Hypothesis grain_pos : 0 < grain.
    Notation allowed := (left_in_books m budgets grain at_most).
    Notation together n p D := (chance tables rates roots m book_of keys_of kind allowed scheduler D n p (nothing tables roots [])).

    Variables (x : nat) (D D' : Data tables scheduler).
    Hypothesis x_in : (x < roots)%nat.
    Hypothesis one_record : forall p, (distance (D p x) (D' p x) <= 1)%nat.
    Hypothesis others_equal : forall p y, y <> x -> D p y = D' p y.

    (** One record of one root, which may arrive at any time. *)
    Theorem bags_sessions_nearly n p : nearly (notion_of x) (fun _ => budget x) (keys_delta x) (together n p D) (together n p D').
    Proof.
      assert (U : forall y, y <> x -> unit x y = 0) by (intros y; apply unit_other).
      assert (V : 0 <= unit x x <= 1) by (unfold unit; rewrite Nat.eqb_refl; lra).
      assert (N : forall q y, (y < roots)%nat -> INR (System.distance tables (D q y) (D' q y)) <= unit x y).
      { intros q y _. change (System.distance tables (D q y) (D' q y)) with (distance (D q y) (D' q y)).
        destruct (Nat.eq_dec y x) as [->|Ny].
        - unfold unit. rewrite Nat.eqb_refl. apply (le_INR _ 1), one_record.
        - rewrite (others_equal q y Ny), distance_refl. apply unit_nonneg. }
      eapply nearly_weaken; [intros t; apply (budget_single x (unit x) x_in U V)|apply (keys_delta_total x (unit x) x_in U V)|].
      exact (shared_nearly tables rates roots m budgets book_of keys_of kind [] allowed
        (left_in_books_respects roots m budgets grain at_most grain_pos) scheduler (book_of x) (notion_of x) (keys_of x) (kind_of x x_in) (used_single x x_in)
        D D' (unit x) (unit_nonneg x) (reach_single x (unit x) U V) N budgets_nonneg n p).
    Qed.

    Theorem bags_sessions_concentrated n p a : notion_of x = Concentrated -> has_keys x = false -> (0 < a)%nat ->
      close (Order a) (fun _ => budget x) (together n p D) (together n p D').
    Proof.
      intros Hn Hk Ha. pose proof (bags_sessions_nearly n p) as K. rewrite Hn in K. unfold keys_delta in K. rewrite Hk in K.
      apply (nearly_exact (list_eq_dec (General.observation_dec tables)) _ _ _ _ (shared_sum_to_one _ _ _ _ _ _ _ _ _ D n p _)
        (shared_sum_to_one _ _ _ _ _ _ _ _ _ D' n p _) K (Order a) Ha).
    Qed.

    (** Whatever the sessions draw in n steps is drawn beforehand, from any set of
        seeds with any weights. *)
    Theorem bags_sessions_concentrated_random_dp n a e {seed} (dec : forall r s : seed, {r = s} + {r <> s}) (weight : seed -> R)
        (start_with : seed -> all tables scheduler) event u v : notion_of x = Concentrated -> (1 < a)%nat ->
      (forall s, 0 <= weight s) -> (forall l, NoDup l -> sum weight l <= 1) ->
      Events.chance_of (fun x => weight (fst x) * together n (start_with (fst x)) D (snd x)) event u ->
      Events.chance_of (fun x => weight (fst x) * together n (start_with (fst x)) D' (snd x)) event v ->
      u <= exp e * v + (keys_delta x + delta_at a (budget x) e).
    Proof.
      intros Hn Ha Hw H1 Hu Hv. pose proof (delta_at_nonneg a (budget x) e Ha) as P. pose proof (keys_delta_nonneg x x_in) as P'.
      refine (Events.chance_mixture dec weight (fun s => together n (start_with s) D)
        (fun s => together n (start_with s) D') e (keys_delta x + delta_at a (budget x) e) Hw H1 ltac:(lra) _ event u v Hu Hv).
      intros s l N. pose proof (bags_sessions_nearly n (start_with s)) as K. rewrite Hn in K.
      apply (nearly_converted (list_eq_dec (General.observation_dec tables))); auto; apply shared_sum_to_one.
    Qed.

    (** A root with an ε and a δ for keys. *)
    Theorem bags_sessions_keys_random_dp n {seed} (dec : forall r s : seed, {r = s} + {r <> s}) (weight : seed -> R)
        (start_with : seed -> all tables scheduler) event u v : notion_of x = Pure ->
      (forall s, 0 <= weight s) -> (forall l, NoDup l -> sum weight l <= 1) ->
      Events.chance_of (fun x => weight (fst x) * together n (start_with (fst x)) D (snd x)) event u ->
      Events.chance_of (fun x => weight (fst x) * together n (start_with (fst x)) D' (snd x)) event v ->
      u <= exp (budget x) * v + keys_delta x.
    Proof.
      intros Hn Hw H1 Hu Hv.
      refine (Events.chance_mixture dec weight (fun s => together n (start_with s) D)
        (fun s => together n (start_with s) D') (budget x) (keys_delta x) Hw H1 (keys_delta_nonneg x x_in) _ event u v Hu Hv).
      intros s l N. pose proof (bags_sessions_nearly n (start_with s)) as K. rewrite Hn in K.
      apply (nearly_pure (list_eq_dec (General.observation_dec tables))); auto using keys_delta_nonneg; apply shared_sum_to_one.
    Qed.

    Theorem bags_sessions_concentrated_dp n p a e event u v : notion_of x = Concentrated -> (1 < a)%nat ->
      Events.chance_of (together n p D) event u -> Events.chance_of (together n p D') event v ->
      u <= exp e * v + (keys_delta x + delta_at a (budget x) e).
    Proof.
      intros Hn Ha [_ Hu] [Hv _]. apply Hu. intros r (l & N & Hl & ->). pose proof (bags_sessions_nearly n p) as K. rewrite Hn in K.
      eapply Rle_trans; [apply (nearly_converted (list_eq_dec (General.observation_dec tables)) (together n p D) (together n p D') a (budget x) e (keys_delta x) l);
        auto using shared_sum_to_one, keys_delta_nonneg|].
      apply Rplus_le_compat_r, Rmult_le_compat_l; [left; apply exp_pos|]. apply Hv. exists l. auto.
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
  Notation keys_of := (keys_of 1 (fun _ => false)).
  Notation kind := (kind 1).

  Definition counting : Client (tables (record := record)) :=
    {| program := Datatypes.unit; does := fun _ => Query tables 0 Instance.Whole [count] e; told := fun _ _ => tt |}.

  Notation seen n D := (probability tables (rates up up_above) 1 (fun _ _ => b) (book_of notion_of) keys_of kind counting n tt (init tables 1 [] D)).

  Lemma counted_reach D : reach 1 (book_of notion_of) keys_of 1 (book tables (init tables 1 [] D) 1) (sensitivity_of tables (init tables 1 [] D) 0) = 1.
  Proof.
    unfold reach. cbn. unfold price, charge, unit. cbn. unfold Rmax. destruct (Rle_dec _ _); lra.
  Qed.

  Lemma counted_rate D : rate tables (rates up up_above) 1 (book_of notion_of) keys_of kind (init tables 1 [] D) 1
    (sensitivity_of tables (init tables 1 [] D) 0) [count] e = Some e.
  Proof.
    unfold rate. rewrite counted_reach. destruct (Req_EM_T 1 0); [lra|]. cbn. rewrite Rmult_1_r, Rmax_left by lra. reflexivity.
  Qed.

  Lemma counted_fits D : within 1 (fun _ _ => b) (book_of notion_of) keys_of (charged tables (rates up up_above) 1 (book_of notion_of) keys_of kind
    (init tables 1 [] D) (sensitivity_of tables (init tables 1 [] D) 0) [count] e) = if Rle_dec e b then true else false.
  Proof.
    unfold within, books_of. cbn [seq forallb Concentrated.keys_of]. change (book_of notion_of 0) with 1%nat. unfold charged, rate_or_0. rewrite counted_rate.
    unfold charge. cbn. unfold unit. cbn. replace (0 + 1 * e) with e by ring. destruct (Rle_dec e b); reflexivity.
  Qed.

  Lemma counted_may D : may_ask tables (rates up up_above) 1 (book_of notion_of) keys_of kind (init tables 1 [] D)
    (sensitivity_of tables (init tables 1 [] D) 0) [count] e = true.
  Proof. unfold may_ask. cbn [seq forallb]. change (book_of notion_of 0) with 1%nat. rewrite counted_rate.
    unfold has_delta. cbn [Concentrated.keys_of spent fold_right]. destruct (Req_EM_T _ 0) as [|N]; [reflexivity|].
    exfalso. apply N. cbn. apply Rmax_left. lra.
  Qed.

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
