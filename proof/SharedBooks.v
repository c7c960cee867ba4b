(** * Sessions that share budgets of both notions

    Several programs, each with tables, partitions and books of its own, as
    [Sessions] has them for the pure case.  A session steps with any budgets that
    leave room for what the others were charged in the book of each root, in that
    book's unit.  Who acts next, and when a root arrives and with which data, is up
    to a scheduler that sees everything that is shown.

    [shared_within]: all of it together is as close, in each book's notion, as the
    budgets say. *)

Require Import Reals Lra Lia List Arith FunctionalExtensionality.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.Scale Fpinq.Closeness Fpinq.Books.
Require Fpinq.General Fpinq.Sessions.
Import ListNotations.
Open Scope R_scope.

Section Shared.
  Variable S : Tables.
  Variable rates : Rates S.
  Variables (roots m : nat) (budget : vector) (book_of : nat -> nat) (kind : nat -> notion) (empty : table S).
  Notation State := (State S).
  Notation Observation := (General.Observation S).
  Notation step := (Books.step S rates roots).

  (** What everybody may know: the books of all sessions. *)
  Definition Public := nat -> nat -> Accounts.
  Variable allowed : Public -> nat -> vector.

  Definition others (A : Public) (i x : nat) : R :=
    sum (fun j => if Nat.eqb j i then 0 else counters (A j (book_of x)) x) (seq 0 m).
  Definition respects : Prop := forall A i x, (i < m)%nat -> (x < roots)%nat -> allowed A i x <= budget x - others A i x.
  Hypothesis budget_respected : respects.

  (** What a group of sessions was charged at x, and session i's own part left out;
      a member of the group steps with what the others leave of a limit, or with less. *)
  Definition charged (members : nat -> bool) (A : Public) (x : nat) : R :=
    sum (fun j => if members j then counters (A j (book_of x)) x else 0) (seq 0 m).
  Definition other_members (members : nat -> bool) (A : Public) (i x : nat) : R :=
    sum (fun j => if (members j && negb (Nat.eqb j i))%bool then counters (A j (book_of x)) x else 0) (seq 0 m).
  Definition keeps_to (members : nat -> bool) (x : nat) (limit : R) : Prop :=
    forall A i, (i < m)%nat -> members i = true -> allowed A i x <= limit - other_members members A i x.

  (** ** The scheduler *)

  Inductive Event := Acts (i : nat) (a : Action S) | Arrives (x : nat).
  Record Scheduler := { all : Type; happens : all -> Event; seen : all -> Observation -> all }.
  Variable scheduler : Scheduler.

  Definition Joint := nat -> State.
  Definition public (J : Joint) : Public := fun j => book S (J j).
  Definition update (J : Joint) (i : nat) (s : State) : Joint := fun j => if Nat.eqb j i then s else J j.
  Definition Data := all scheduler -> nat -> table S.

  Definition arrive (s : State) (x : nat) (T : table S) : State :=
    {| environment := General.bind S (environment S s) x (T, unit x); book := book S s |}.

  Definition stepped (J : Joint) (i : nat) (a : Action S) : General.Reply S * State :=
    step (allowed (public J) i) book_of kind (J i) a.

  Definition shown (p : all scheduler) (J : Joint) : General.Reply S :=
    match happens scheduler p with
    | Acts i a => if Nat.ltb i m then fst (stepped J i a) else General.Shows S (General.Refused S)
    | Arrives x => if Nat.ltb x roots then General.Shows S (General.Tau S) else General.Shows S (General.Refused S)
    end.
  Definition then_ (D : Data) (p : all scheduler) (J : Joint) : Joint :=
    match happens scheduler p with
    | Acts i a => if Nat.ltb i m then update J i (snd (stepped J i a)) else J
    | Arrives x => if Nat.ltb x roots then fun j => arrive (J j) x (D p x) else J
    end.

  Fixpoint chance (D : Data) (n : nat) (p : all scheduler) (J : Joint) (t : list Observation) : R :=
    match n, t with
    | O, [] => 1
    | Datatypes.S n, o :: t => General.chances S (shown p J) o * chance D n (seen scheduler p o) (then_ D p J) t
    | _, _ => 0
    end.

  Fixpoint after (D : Data) (p : all scheduler) (J : Joint) (t : list Observation) : Joint :=
    match t with [] => J | o :: t => after D (seen scheduler p o) (then_ D p J) t end.

  Lemma shown_runnable p J : General.runnable S (shown p J).
  Proof.
    unfold shown. destruct (happens scheduler p) as [i a|x]; [|destruct (Nat.ltb x roots); exact I].
    destruct (Nat.ltb i m); [apply step_runnable|exact I].
  Qed.

  Theorem shared_sum_to_one D n : forall p J, distribution (chance D n p J).
  Proof.
    induction n as [|n IH]; intros p J.
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution (General.observation_dec S) (General.chances S (shown p J))
        (fun o => chance D n (seen scheduler p o) (then_ D p J)))].
      + intros []; reflexivity.
      + apply General.chances_distribution, shown_runnable.
      + intros o. apply IH.
  Qed.

  (** ** One book, over two runs *)

  Section OneBook.
    Variable b : nat.
    Hypothesis b_used : exists x, (x < roots)%nat /\ own book_of b x = true.
    Notation sound c := (Books.sound S roots c book_of kind b).
    Notation similar := (Books.similar S b).
    Notation psi := (Books.psi S b).

    (** Sound whatever the budgets are. *)
    Definition fair (s : State) (d : vector) : Prop := sound (counters (book S s b)) s d.

    Lemma refit c c' s d : sound c s d -> (forall x, (x < roots)%nat -> own book_of b x = true -> counters (book S s b) x <= c' x) ->
      sound c' s d.
    Proof. intros [] H. split; assumption. Qed.

    Lemma fair_of c s d : sound c s d -> fair s d.
    Proof. intros H. apply (refit c); auto. intros. apply Rle_refl. Qed.

    (** A step under any budgets: the book's roots are within them afterwards, or
        have paid nothing. *)
    Lemma step_under c s s' d a : fair s d -> similar s s' d -> exists d',
      let u := snd (step c book_of kind s a) in let u' := snd (step c book_of kind s' a) in
      fair u d' /\ similar u u' d' /\ (forall x, (x < roots)%nat -> d' x = d x) /\
      ((forall x, (x < roots)%nat -> own book_of b x = true -> counters (book S u b) x <= c x) \/
       (forall x, counters (book S u b) x = counters (book S s b) x)) /\
      alike (kind b) (fun _ => psi u d' - psi s d) (General.chances S (fst (step c book_of kind s a)))
        (General.chances S (fst (step c book_of kind s' a))).
    Proof.
      intros H K. pose proof K as [HB HK]. set (mine := counters (book S s b)) in *.
      assert (use : forall r r' u u', Books.advances S roots mine book_of kind b s s' d r r' u u' ->
        (forall x, counters (book S u b) x = mine x) -> exists d', fair u d' /\ similar u u' d' /\
        (forall x, (x < roots)%nat -> d' x = d x) /\
        ((forall x, (x < roots)%nat -> own book_of b x = true -> counters (book S u b) x <= c x) \/
         (forall x, counters (book S u b) x = mine x)) /\
        alike (kind b) (fun _ => psi u d' - psi s d) (General.chances S r) (General.chances S r')).
      { intros r r' u u' (d' & H1 & K1 & E1 & L1) E. exists d'. split; [apply (fair_of mine), H1|]. repeat (split; auto). }
      assert (still : forall o, exists d', fair s d' /\ similar s s' d' /\ (forall x, (x < roots)%nat -> d' x = d x) /\
        ((forall x, (x < roots)%nat -> own book_of b x = true -> counters (book S s b) x <= c x) \/
         (forall x, counters (book S s b) x = mine x)) /\
        alike (kind b) (fun _ => psi s d' - psi s d) (General.chances S (General.Shows S o)) (General.chances S (General.Shows S o))).
      { intros o. apply use; [apply advances_shown; assumption|reflexivity]. }
      destruct a.
      - apply still.
      - apply (use _ _ _ _ (assign_advances S rates roots mine book_of kind b s s' d t F ts H K)).
        intros x. cbn [Books.step]. unfold General.assign. destruct (combine _ _ _); reflexivity.
      - apply (use _ _ _ _ (partition_advances S rates roots mine book_of kind b s s' d t f k dest H K)). reflexivity.
      - cbn [Books.step]. rewrite <- (similar_sensitivity S b s s' d t K).
        destruct (Rlt_dec 0 e) as [He|]; [|apply still].
        assert (EC : Books.charged S rates roots book_of kind s' (sensitivity_of S s t) Qs e =
          Books.charged S rates roots book_of kind s (sensitivity_of S s t) Qs e).
        { unfold Books.charged, rate_or_0, rate. rewrite <- HB. reflexivity. }
        assert (EM : may_ask S rates roots book_of kind s' (sensitivity_of S s t) Qs e =
          may_ask S rates roots book_of kind s (sensitivity_of S s t) Qs e).
        { unfold may_ask, rate. rewrite <- HB. reflexivity. }
        cbv zeta. rewrite EC, EM. destruct (may_ask S rates roots book_of kind s (sensitivity_of S s t) Qs e) eqn:Hm; [|apply still].
        destruct (within roots c book_of (Books.charged S rates roots book_of kind s (sensitivity_of S s t) Qs e)) eqn:Hw;
          [|apply still]. cbn [fst snd].
        assert (Hc : forall x, (x < roots)%nat -> own book_of b x = true ->
          counters (Books.charged S rates roots book_of kind s (sensitivity_of S s t) Qs e b) x <= c x).
        { intros x Hx Ho. unfold within in Hw. rewrite forallb_forall in Hw. specialize (Hw x (book_below roots x Hx)).
          apply Nat.eqb_eq in Ho. rewrite Ho in Hw. destruct (Rle_dec _ _); [assumption|discriminate]. }
        assert (Hr : rate S rates roots book_of kind s b (sensitivity_of S s t) Qs e <> None).
        { destruct b_used as (x & Hx & Ho). unfold may_ask in Hm. rewrite forallb_forall in Hm. specialize (Hm x (book_below roots x Hx)).
          apply Nat.eqb_eq in Ho. rewrite Ho in Hm. intros E. rewrite E in Hm. discriminate. }
        assert (Hs : sound c s d).
        { apply (refit mine); [exact H|]. intros x Hx Ho. eapply Rle_trans; [|apply (Hc x Hx Ho)].
          destruct (Books.sound_well _ _ _ _ _ _ _ _ H). unfold Books.charged, rate_or_0.
          destruct (rate S rates roots book_of kind s b (sensitivity_of S s t) Qs e) as [k|] eqn:E; [|congruence].
          apply (General.charge_grows roots); auto; [apply sound_nonneg|].
          unfold rate in E. destruct (Req_EM_T _ 0); [injection E as <-; lra|].
          apply (dearest_nonneg S rates _ _ _ _ _ He (reach_nonneg roots book_of b _ _) E). }
        destruct (query_advances S rates roots c book_of kind b s s' d t f Qs e Hs K He Hr Hc) as (d' & H1 & K1 & E1 & L1).
        exists d'. split; [apply (fair_of c), H1|]. repeat (split; auto).
      - cbn [Books.step]. rewrite <- HB, <- (similar_sensitivity S b s s' d t K). apply still.
      - cbn [Books.step]. rewrite <- HB. apply still.
      - cbn [Books.step]. rewrite <- (similar_sensitivity S b s s' d t K).
        destruct (Rlt_dec 0 e) as [He|]; [|apply still].
        assert (EM : may_ask S rates roots book_of kind s' (sensitivity_of S s t) Qs e =
          may_ask S rates roots book_of kind s (sensitivity_of S s t) Qs e).
        { unfold may_ask, rate. rewrite <- HB. reflexivity. }
        rewrite EM. destruct (may_ask S rates roots book_of kind s (sensitivity_of S s t) Qs e); [|apply still].
        unfold rate_or_0, rate. rewrite <- HB. apply still.
    Qed.

    Variables (D D' : Data) (d0 : vector).
    Hypothesis d0_nonneg : forall x, 0 <= d0 x.
    Hypothesis d0_about : about roots book_of kind b d0.
    Hypothesis near_data : forall p x, (x < roots)%nat -> INR (distance S (D p x) (D' p x)) <= d0 x.
    Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.

    (** What all sessions paid at x. *)
    Definition in_all (J : Joint) (x : nat) : R := sum (fun j => counters (book S (J j) b) x) (seq 0 m).

    Record invariant (J J' : Joint) (ds : nat -> vector) : Prop := {
      each_fair : forall j, fair (J j) (ds j);
      each_similar : forall j, similar (J j) (J' j) (ds j);
      each_roots : forall j x, (x < roots)%nat -> ds j x = d0 x;
      all_within : forall x, (x < roots)%nat -> own book_of b x = true -> in_all J x <= budget x }.

    Definition psis (J : Joint) (ds : nat -> vector) : R := sum (fun j => psi (J j) (ds j)) (seq 0 m).

    Lemma same_public J J' ds : invariant J J' ds -> public J = public J'.
    Proof. intros H. apply functional_extensionality. intros j. apply (each_similar _ _ _ H j). Qed.

    Lemma psis_within J J' ds : invariant J J' ds -> psis J ds <= dot roots budget d0.
    Proof.
      intros H. apply Rle_trans with (dot roots (in_all J) d0).
      - assert (E : sum (fun j => dot roots (counters (book S (J j) b)) d0) (seq 0 m) = dot roots (in_all J) d0).
        { unfold in_all. generalize (seq 0 m) as l. induction l as [|j l IH]; simpl; [symmetry; apply dot_zero|]. rewrite IH.
          clear. induction roots as [|r IHr]; simpl; [ring|]. rewrite <- IHr. ring. }
        rewrite <- E. unfold psis. apply sum_le. intros j _.
        eapply Rle_trans; [apply (psi_paid S roots _ book_of kind b _ _ (each_fair _ _ _ H j))|]. unfold paid.
        rewrite (dot_ext roots _ (counters (book S (J j) b)) (ds j) d0); [lra|]. intros x Hx. split; auto. apply (each_roots _ _ _ H), Hx.
      - assert (K : forall k, (k <= roots)%nat -> dot k (in_all J) d0 <= dot k budget d0); [|apply K; lia].
        induction k as [|k IH]; intros Hk; simpl; [lra|]. specialize (IH ltac:(lia)). apply Rplus_le_compat; [exact IH|].
        destruct (own book_of b k) eqn:Ho.
        + apply Rmult_le_compat_r; [apply d0_nonneg|]. apply (all_within _ _ _ H); [lia|exact Ho].
        + destruct d0_about as [A _]. rewrite (A k) by (assumption || lia). lra.
    Qed.

    Lemma one_event p J J' ds : invariant J J' ds -> exists ds', invariant (then_ D p J) (then_ D' p J') ds' /\
      alike (kind b) (fun _ => psis (then_ D p J) ds' - psis J ds) (General.chances S (shown p J)) (General.chances S (shown p J')) /\
      (forall members x limit, (x < roots)%nat -> own book_of b x = true -> keeps_to members x limit ->
        charged members (public J) x <= limit -> charged members (public (then_ D p J)) x <= limit).
    Proof.
      intros H. unfold then_, shown, stepped. rewrite <- (same_public J J' ds H).
      assert (still : forall o, exists ds', invariant J J' ds' /\ alike (kind b) (fun _ => psis J ds' - psis J ds)
        (General.chances S (General.Shows S o)) (General.chances S (General.Shows S o)) /\
        (forall members x limit, (x < roots)%nat -> own book_of b x = true -> keeps_to members x limit ->
          charged members (public J) x <= limit -> charged members (public J) x <= limit)).
      { intros o. exists ds. split; [exact H|]. split; [apply alike_shown; ring|auto]. }
      destruct (happens scheduler p) as [i a|x].
      - destruct (Nat.ltb_spec i m) as [Hi|Hi]; [|apply still].
        destruct (step_under (allowed (public J) i) (J i) (J' i) (ds i) a (each_fair _ _ _ H i) (each_similar _ _ _ H i))
          as (d' & Hw & Hs & Hd & Hb & HC).
        set (u := snd (step (allowed (public J) i) book_of kind (J i) a)) in *.
        set (u' := snd (step (allowed (public J) i) book_of kind (J' i) a)) in *.
        assert (Hin : In i (seq 0 m)) by (apply in_seq; lia).
        exists (fun j => if Nat.eqb j i then d' else ds j). split; [split|split].
        + intros j. unfold update. destruct (Nat.eqb j i); [exact Hw|apply (each_fair _ _ _ H)].
        + intros j. unfold update. destruct (Nat.eqb j i); [exact Hs|apply (each_similar _ _ _ H)].
        + intros j x Hx. destruct (Nat.eqb_spec j i) as [->|]; [rewrite Hd by exact Hx|]; apply (each_roots _ _ _ H); auto.
        + intros x Hx Ho. unfold in_all.
          rewrite (Sessions.sum_change _ (fun j => counters (book S (J j) b) x) i) by
            (auto using seq_NoDup; intros j Hj; unfold update; destruct (Nat.eqb_spec j i); congruence).
          unfold update at 1. rewrite Nat.eqb_refl. pose proof (all_within _ _ _ H x Hx Ho) as W. unfold in_all in W.
          destruct Hb as [Hb|Hb]; [|rewrite Hb; lra].
          specialize (Hb x Hx Ho). pose proof (budget_respected (public J) i x Hi Hx) as R. unfold others in R.
          assert (E : book_of x = b) by (apply Nat.eqb_eq, Ho).
          rewrite (Sessions.sum_change (fun j => if Nat.eqb j i then 0 else counters (public J j (book_of x)) x)
            (fun j => counters (book S (J j) b) x) i) in R.
          * rewrite Nat.eqb_refl in R. lra.
          * apply seq_NoDup.
          * exact Hin.
          * intros j Hj. unfold public. rewrite E. destruct (Nat.eqb_spec j i); congruence.
        + intros o Ho. replace (psis (update J i u) (fun j => if Nat.eqb j i then d' else ds j) - psis J ds)
            with (psi u d' - psi (J i) (ds i)); [apply (HC o Ho)|].
          unfold psis. rewrite (Sessions.sum_change (fun j => psi (update J i u j) (if Nat.eqb j i then d' else ds j))
            (fun j => psi (J j) (ds j)) i) by
            (auto using seq_NoDup; intros j Hj; unfold update; destruct (Nat.eqb_spec j i); congruence).
          unfold update. rewrite !Nat.eqb_refl. ring.
        + intros members x limit Hx Ho HR HL. assert (E : book_of x = b) by (apply Nat.eqb_eq, Ho).
          unfold charged. rewrite (Sessions.sum_change _ (fun j => if members j then counters (public J j (book_of x)) x else 0) i) by
            (auto using seq_NoDup; intros j Hj; unfold public, update; destruct (Nat.eqb_spec j i); congruence).
          unfold charged in HL. unfold public at 3, update. rewrite Nat.eqb_refl, E. rewrite E in HL.
          destruct (members i) eqn:Em; [|lra]. unfold public at 2.
          destruct Hb as [Hb|Hb]; [|rewrite Hb; lra]. specialize (Hb x Hx Ho). specialize (HR (public J) i Hi Em).
          unfold other_members in HR.
          rewrite (Sessions.sum_change _ (fun j => if members j then counters (public J j (book_of x)) x else 0) i) in HR.
          * rewrite Nat.eqb_refl, Em, E in HR. simpl in HR. unfold public in *. lra.
          * apply seq_NoDup.
          * exact Hin.
          * intros j Hj. destruct (Nat.eqb_spec j i); [congruence|]. rewrite Bool.andb_true_r. reflexivity.
      - destruct (Nat.ltb_spec x roots) as [Hx|Hx]; [|apply still].
        exists ds. split; [split|split].
        + intros j. destruct (each_fair _ _ _ H j). split; auto. apply (General.arrive_well S roots (view S (J j) b)); auto.
        + intros j. destruct (each_similar _ _ _ H j) as [HB HK]. split; [exact HB|].
          apply (General.arrive_similar S roots (view S (J j) b) (view S (J' j) b)); auto.
          * apply (each_fair _ _ _ H j).
          * rewrite (each_roots _ _ _ H j x Hx). apply near_data, Hx.
        + apply (each_roots _ _ _ H).
        + apply (all_within _ _ _ H).
        + apply alike_shown. unfold psis, Books.psi. simpl. ring.
        + auto.
    Qed.

    Theorem shared_alike n : forall p J J' ds, invariant J J' ds ->
      alike (kind b) (fun _ => dot roots budget d0 - psis J ds) (chance D n p J) (chance D' n p J').
    Proof.
      induction n as [|n IH]; intros p J J' ds H o Ho; pose proof (looks_proper _ _ Ho) as Hp;
        pose proof (psis_within J J' ds H) as W.
      - apply (close_weaken o Hp (fun _ => 0)); try apply shared_sum_to_one; [intros _; lra|].
        apply (close_ext o Hp (fun _ => 0) _ ended ended); try (intros []; reflexivity).
        apply (close_same o Hp), ended_distribution.
      - destruct (one_event p J J' ds H) as (d1 & H1 & L1 & _).
        pose proof (close_sequence o Hp (General.observation_dec S) (fun _ => psis (then_ D p J) d1 - psis J ds)
          (fun _ _ => dot roots budget d0 - psis (then_ D p J) d1) (General.chances S (shown p J)) (General.chances S (shown p J'))
          (fun x => chance D n (seen scheduler p x) (then_ D p J)) (fun x => chance D' n (seen scheduler p x) (then_ D' p J'))
          (nonnegative _ (General.chances_distribution S _ (shown_runnable p J)))
          (nonnegative _ (General.chances_distribution S _ (shown_runnable p J')))
          (fun x => nonnegative _ (shared_sum_to_one D n _ _)) (fun x => nonnegative _ (shared_sum_to_one D' n _ _))
          (L1 o Ho) (fun x => IH _ _ _ d1 H1 o Ho)) as C.
        apply (close_weaken o Hp (fun t : list Observation => match t with [] => 0 | _ =>
          psis (then_ D p J) d1 - psis J ds + (dot roots budget d0 - psis (then_ D p J) d1) end)); try apply shared_sum_to_one.
        + intros []; lra.
        + revert C. apply (close_ext o Hp); intros []; reflexivity.
    Qed.

    (** No tables, no charges; the roots that there are arrive first. *)
    Definition nothing : Joint := fun _ => {| environment := fun _ => (empty, fun _ => 0); book := fun _ => opening roots |}.

    Lemma nothing_invariant : invariant nothing nothing (fun _ => d0).
    Proof.
      split.
      - intros j. split; auto.
        + split; simpl; auto; try (apply certificate_opening); try constructor; intros; unfold General.sensitivity_of; simpl; lra.
        + intros. apply Rle_refl.
      - intros j. split; [reflexivity|]. split; [reflexivity|]. intros t. unfold General.sensitivity_of, General.table_of. simpl.
        split; [reflexivity|]. rewrite distance_refl, dot_zero. simpl. lra.
      - reflexivity.
      - intros x Hx _. unfold in_all. rewrite sum_zero by reflexivity. auto.
    Qed.

    Theorem shared_within n p : alike (kind b) (fun _ => dot roots budget d0) (chance D n p nothing) (chance D' n p nothing).
    Proof.
      intros o Ho. pose proof (shared_alike n p _ _ _ nothing_invariant o Ho) as K.
      assert (Z : psis nothing (fun _ => d0) = 0).
      { unfold psis. apply sum_zero. intros j _. unfold Books.psi, Psi, potential. simpl. rewrite dot_zero. ring. }
      rewrite Z, Rminus_0_r in K. exact K.
    Qed.

    Lemma limits_kept t : forall p J J' ds, invariant J J' ds -> forall members x limit, (x < roots)%nat ->
      own book_of b x = true -> keeps_to members x limit -> charged members (public J) x <= limit ->
      charged members (public (after D p J t)) x <= limit.
    Proof.
      induction t as [|o t IH]; intros p J J' ds H members x limit Hx Ho HR HL; simpl; auto.
      destruct (one_event p J J' ds H) as (d1 & H1 & _ & R1). apply (IH _ _ _ d1 H1); auto.
    Qed.
  End OneBook.

  (** A group of sessions never goes beyond a limit that it keeps to: an analyst's,
      say, beyond the cap. *)
  Theorem limits_hold D p t members x limit : (forall y, (y < roots)%nat -> 0 <= budget y) -> (x < roots)%nat ->
    keeps_to members x limit -> 0 <= limit -> charged members (public (after D p nothing t)) x <= limit.
  Proof.
    intros HB Hx HR HL. assert (Ho : own book_of (book_of x) x = true) by apply Nat.eqb_refl.
    assert (Z : forall k, dot k (fun _ => 1) (fun _ => 0) = 0) by (induction k as [|k IH]; simpl; [reflexivity|rewrite IH; ring]).
    assert (HA : about roots book_of kind (book_of x) (fun _ => 0)) by (split; [auto|intros _; rewrite Z; lra]).
    assert (H0 : forall y : nat, 0 <= (fun _ : nat => 0) y) by (intros; lra).
    assert (HN : forall (q : all scheduler) y, (y < roots)%nat -> INR (distance S (D q y) (D q y)) <= (fun _ : nat => 0) y)
      by (intros; rewrite distance_refl; simpl; lra).
    refine (limits_kept (book_of x) (ex_intro _ x (conj Hx Ho)) D D (fun _ => 0) HN t p nothing nothing
      (fun _ _ => 0) _ members x limit Hx Ho HR _).
    - apply (nothing_invariant (book_of x)); assumption.
    - unfold charged. rewrite sum_zero; auto. intros j _. unfold public, nothing. simpl. destruct (members j); reflexivity.
  Qed.
End Shared.

(** ** What the ledger allows

    [model/sessions.py: left_to]: what the others took of a root, each rounded up
    to whole units; and less, if a cap leaves less. *)

Section Ledger.
  Variables (roots m : nat) (budget : vector) (book_of : nat -> nat) (grain : R) (at_most : Public -> nat -> vector).
  Hypothesis grain_pos : 0 < grain.

  Definition left_in_books (A : Public) (i x : nat) : R :=
    Rmin (at_most A i x)
      (budget x - sum (fun j => if Nat.eqb j i then 0 else Sessions.rounded_up grain (counters (A j (book_of x)) x)) (seq 0 m)).

  Lemma left_in_books_respects : respects roots m budget book_of left_in_books.
  Proof.
    intros A i x _ _. unfold left_in_books, others. eapply Rle_trans; [apply Rmin_r|].
    assert (sum (fun j => if Nat.eqb j i then 0 else counters (A j (book_of x)) x) (seq 0 m) <=
      sum (fun j => if Nat.eqb j i then 0 else Sessions.rounded_up grain (counters (A j (book_of x)) x)) (seq 0 m)); [|lra].
    apply sum_le. intros j _. destruct (Nat.eqb j i); [lra|]. apply Sessions.rounded_up_ge, grain_pos.
  Qed.

  (** What an analyst's cap leaves a session. *)
  Variables (analyst : nat -> nat) (cap : nat -> nat -> option R).
  Definition left_of_cap (A : Public) (i x : nat) : R :=
    match cap (analyst i) x with
    | Some c => c - sum (fun j => if (Nat.eqb (analyst i) (analyst j) && negb (Nat.eqb j i))%bool
        then Sessions.rounded_up grain (counters (A j (book_of x)) x) else 0) (seq 0 m)
    | None => budget x
    end.
  Hypothesis at_most_capped : forall A i x, at_most A i x <= left_of_cap A i x.

  Lemma left_in_books_keeps_to a x c : cap a x = Some c ->
    keeps_to m book_of left_in_books (fun j => Nat.eqb a (analyst j)) x c.
  Proof.
    intros Hc A i _ Hm. apply Nat.eqb_eq in Hm. subst a. unfold left_in_books. eapply Rle_trans; [apply Rmin_l|].
    eapply Rle_trans; [apply at_most_capped|]. unfold left_of_cap. rewrite Hc. apply Rplus_le_compat_l, Ropp_le_contravar.
    apply sum_le. intros j _. destruct (Nat.eqb (analyst i) (analyst j) && negb (Nat.eqb j i))%bool; [|lra].
    apply Sessions.rounded_up_ge, grain_pos.
  Qed.

  (** What an analyst's sessions were charged is within the cap, in the unit of the
      root's budget. *)
  Theorem caps_hold_in_books S rates kind empty scheduler D p t a x c : (forall y, (y < roots)%nat -> 0 <= budget y) ->
    (x < roots)%nat -> cap a x = Some c -> 0 <= c ->
    charged m book_of (fun j => Nat.eqb a (analyst j)) (public S (after S rates roots m book_of kind left_in_books scheduler D p
      (nothing S roots empty) t)) x <= c.
  Proof.
    intros HB Hx Hc H0. apply (limits_hold S rates roots m budget book_of kind empty left_in_books left_in_books_respects scheduler); auto.
    apply left_in_books_keeps_to, Hc.
  Qed.
End Ledger.
