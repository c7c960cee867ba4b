(** * Featherweight PINQ

    The paper's semantics and its theorem: one data set, one budget, parallel
    queries.  A configuration is ⟨P, E, B⟩: a program, an environment that maps
    every table variable to a table and its scaling factor, and the budget that
    remains.  The observer sees what each step shows.

    The rules are those of the paper with its slips corrected: queries run at e
    and charge s * e; a query that does not fit is answered by ⊥ and costs
    nothing; programs may ask for a scaling factor and for the budget left. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Probability Fpinq.System.
Import ListNotations.
Open Scope R_scope.

Section Featherweight.
  Variable S : System.
  Notation table := (table S).
  Notation distance := (distance S).

  (** ** Programs

      A program is anything deterministic that issues actions and is told what
      the observer sees.  Being a function, [told] accepts every answer, ⊥
      included. *)

  Inductive Action :=
    | Silent
    | Assign (t : nat) (F : transformation S) (ts : list nat)
    | Query (t : nat) (f : splitter S) (Qs : list (mechanism S)) (e : R)
    | AskScale (t : nat)
    | AskBudget.

  Inductive Observation :=
    | Tau
    | Answers (vs : list (answer S))
    | Bottom
    | Scale (s : nat)
    | Budget (b : R)
    | Refused.

  Lemma observation_dec (o o' : Observation) : {o = o'} + {o <> o'}.
  Proof. decide equality; try apply Nat.eq_dec; try apply Req_EM_T. apply list_eq_dec, answer_dec. Qed.

  Record Client := { program : Type; does : program -> Action; told : program -> Observation -> program }.
  Variable client : Client.

  (** ** The rules *)

  Definition environment := nat -> table * nat.
  Record configuration := Configuration { P : program client; E : environment; B : R }.
  Notation "⟨ p , e , b ⟩" := (Configuration p e b).

  Definition bind (env : environment) (t : nat) (x : table * nat) : environment :=
    fun y => if Nat.eqb y t then x else env y.

  (** Σ c_i * s_i over the arguments of F, if it is finite. *)
  Definition scaling_factor (env : environment) (F : transformation S) (ts : list nat) : option nat :=
    scale (stability S F) (map (fun t => snd (env t)) ts).

  Definition tables (env : environment) (ts : list nat) : list table := map (fun t => fst (env t)) ts.

  (** [step c o p c']: in c the observer sees o with probability p, and the
      system goes on as c'.  The last two rules make the system total: an action
      without meaning changes nothing (in Python it raises a ProgramError). *)
  Inductive step : configuration -> Observation -> R -> configuration -> Prop :=
    | silent : forall p env b, does client p = Silent ->
        step ⟨p, env, b⟩ Tau 1 ⟨told client p Tau, env, b⟩
    | assign : forall p env b t F ts s, does client p = Assign t F ts -> scaling_factor env F ts = Some s ->
        step ⟨p, env, b⟩ Tau 1 ⟨told client p Tau, bind env t (apply S F (tables env ts), s), b⟩
    | query : forall p env b t f Qs e vs, does client p = Query t f Qs e -> 0 < e -> INR (snd (env t)) * e <= b ->
        step ⟨p, env, b⟩ (Answers vs) (parallel S f e (fst (env t)) 0 Qs vs)
             ⟨told client p (Answers vs), env, b - INR (snd (env t)) * e⟩
    | query_bottom : forall p env b t f Qs e, does client p = Query t f Qs e -> 0 < e -> INR (snd (env t)) * e > b ->
        step ⟨p, env, b⟩ Bottom 1 ⟨told client p Bottom, env, b⟩
    | ask_scale : forall p env b t, does client p = AskScale t ->
        step ⟨p, env, b⟩ (Scale (snd (env t))) 1 ⟨told client p (Scale (snd (env t))), env, b⟩
    | ask_budget : forall p env b, does client p = AskBudget ->
        step ⟨p, env, b⟩ (Budget b) 1 ⟨told client p (Budget b), env, b⟩
    | refuse_assign : forall p env b t F ts, does client p = Assign t F ts -> scaling_factor env F ts = None ->
        step ⟨p, env, b⟩ Refused 1 ⟨told client p Refused, env, b⟩
    | refuse_query : forall p env b t f Qs e, does client p = Query t f Qs e -> ~ 0 < e ->
        step ⟨p, env, b⟩ Refused 1 ⟨told client p Refused, env, b⟩.

  (** A trace is what the observer sees; its probability is the product along
      the way. *)
  Inductive trace : configuration -> list Observation -> R -> configuration -> Prop :=
    | trace_nil : forall c, trace c [] 1 c
    | trace_cons : forall c o p c1 t q c2, step c o p c1 -> trace c1 t q c2 -> trace c (o :: t) (p * q) c2.

  (** ** Traces are deterministic *)

  Lemma step_deterministic c o p q c1 c2 : step c o p c1 -> step c o q c2 -> p = q /\ c1 = c2.
  Proof.
    intros H K. inversion H; subst; inversion K; subst; try congruence;
      repeat match goal with
      | X : does client ?p = _, Y : does client ?p = _ |- _ => rewrite X in Y; injection Y as; subst
      | X : scaling_factor ?e ?F ?ts = _, Y : scaling_factor ?e ?F ?ts = _ |- _ =>
          rewrite X in Y; injection Y as; subst
      end; try (split; reflexivity); exfalso; lra.
  Qed.

  Theorem trace_deterministic t c p q c1 c2 : trace c t p c1 -> trace c t q c2 -> p = q /\ c1 = c2.
  Proof.
    intros H. revert q c2. induction H as [c|c o p c1 t q c2 Hs Ht IH]; intros q' c2' K; inversion K; subst; auto.
    match goal with X : step c o ?p' ?c' |- _ => destruct (step_deterministic c o p p' c1 c' Hs X) as [<- <-] end.
    match goal with X : trace c1 t ?q' c2' |- _ => destruct (IH q' c2' X) as [<- <-] end. auto.
  Qed.

  (** ** The invariant

      Two configurations are similar if program, scaling factors and budget
      agree, and every table is within its own scaling factor. *)
  Definition similar (c c' : configuration) : Prop :=
    P c = P c' /\ B c = B c' /\
    forall t, snd (E c t) = snd (E c' t) /\ (distance (fst (E c t)) (fst (E c' t)) <= snd (E c t))%nat.

  (** The scaling factor that Assign computes bounds the new table. *)
  Lemma scale_mono cs : forall ds ss s, Forall2 le ds ss -> scale cs ss = Some s ->
    exists d, scale cs ds = Some d /\ (d <= s)%nat.
  Proof.
    induction cs as [|c cs IH]; intros ds ss s H Hs; inversion H; subst; simpl in *; try discriminate.
    - exists O. injection Hs as <-. auto.
    - destruct (times c y) as [a|] eqn:Ha; [|discriminate]. destruct (scale cs l') as [b|] eqn:Hb; [|discriminate].
      injection Hs as <-. destruct (IH l l' b H1 Hb) as (d & -> & Hd).
      destruct c as [c|]; simpl in *.
      + injection Ha as <-. exists (c * x + d)%nat. split; auto. nia.
      + destruct (Nat.eqb_spec y 0); [|discriminate]. injection Ha as <-. replace x with O by lia. exists d. simpl.
        split; auto.
  Qed.

  Lemma assigned_distance env env' F ts s :
    (forall t, snd (env t) = snd (env' t) /\ (distance (fst (env t)) (fst (env' t)) <= snd (env t))%nat) ->
    scaling_factor env F ts = Some s -> (distance (apply S F (tables env ts)) (apply S F (tables env' ts)) <= s)%nat.
  Proof.
    intros HE Hs. unfold scaling_factor in Hs.
    destruct (scale_mono (stability S F) (distances S (tables env ts) (tables env' ts))
      (map (fun t => snd (env t)) ts) s) as (d & Hd & Hle); auto.
    - unfold tables. clear Hs. induction ts; simpl; constructor; auto. apply HE.
    - eapply Nat.le_trans; [|exact Hle]. apply lemma1; auto. unfold tables. rewrite !map_length. reflexivity.
  Qed.

  (** One step keeps the invariant, and changes the odds by at most the
      exponential of what it spends. *)
  Lemma step_similar c c' o p c1 : step c o p c1 -> similar c c' -> 0 <= B c ->
    exists q c1', step c' o q c1' /\ similar c1 c1' /\ 0 <= B c1 <= B c /\ 0 <= p /\ 0 <= q /\
      p <= q * exp (B c - B c1).
  Proof.
    intros H (HP & HB & HE) Hb. destruct c' as [p' env' b']. destruct H; simpl in *; subst p' b'.
    - exists 1. eexists. split; [apply silent; auto|]. repeat split; simpl; try apply HE; try lra.
      rewrite exp_nothing. lra.
    - assert (Hs : scaling_factor env' F ts = Some s).
      { rewrite <- H0. unfold scaling_factor. f_equal. apply map_ext. intros x. symmetry. apply HE. }
      exists 1. eexists. split; [eapply assign; eauto|].
      split; [|repeat split; simpl; try lra; rewrite exp_nothing; lra].
      split; [reflexivity|]. split; [reflexivity|]. intros y. simpl. unfold bind. destruct (Nat.eqb y t); [|apply HE].
      split; [reflexivity|]. simpl. apply assigned_distance; auto.
    - destruct (HE t) as [Hs Hd]. exists (parallel S f e (fst (env' t)) 0 Qs vs). eexists.
      split; [apply (query p env' b t f Qs e vs); auto; rewrite <- Hs; auto|].
      assert (Hpos : 0 <= INR (snd (env t)) * e) by (apply Rmult_le_pos; [apply pos_INR|lra]).
      repeat split; simpl; try apply HE; try lra; try (apply parallel_nonneg; assumption).
      + rewrite Hs. reflexivity.
      + eapply Rle_trans; [apply (parallel_private S (mass_private S) f e (fst (env t)) (fst (env' t))); auto|].
        apply Rmult_le_compat_l; [apply parallel_nonneg; assumption|]. apply exp_mono.
        replace (b - (b - INR (snd (env t)) * e)) with (e * INR (snd (env t))) by ring.
        apply Rmult_le_compat_l; [lra|]. apply le_INR, Hd.
    - destruct (HE t) as [Hs _]. exists 1. eexists. split; [eapply query_bottom; eauto; rewrite <- Hs; auto|].
      repeat split; simpl; try apply HE; try lra. rewrite exp_nothing. lra.
    - destruct (HE t) as [Hs _]. exists 1. rewrite Hs. eexists. split; [apply ask_scale; auto|].
      repeat split; simpl; try apply HE; try lra. rewrite exp_nothing. lra.
    - exists 1. eexists. split; [apply ask_budget; auto|]. repeat split; simpl; try apply HE; try lra.
      rewrite exp_nothing. lra.
    - assert (Hs : scaling_factor env' F ts = None).
      { rewrite <- H0. unfold scaling_factor. f_equal. apply map_ext. intros x. symmetry. apply HE. }
      exists 1. eexists. split; [eapply refuse_assign; eauto|]. repeat split; simpl; try apply HE; try lra.
      rewrite exp_nothing. lra.
    - exists 1. eexists. split; [eapply refuse_query; eauto|]. repeat split; simpl; try apply HE; try lra.
      rewrite exp_nothing. lra.
  Qed.

  Theorem trace_similar t c p c1 : trace c t p c1 -> forall c', similar c c' -> 0 <= B c ->
    exists q c1', trace c' t q c1' /\ similar c1 c1' /\ 0 <= B c1 <= B c /\ 0 <= p /\ 0 <= q /\
      p <= q * exp (B c - B c1).
  Proof.
    induction 1 as [c|c o p c1 t q c2 Hs Ht IH]; intros c' Hsim Hb.
    - exists 1, c'. split; [constructor|]. repeat split; try apply Hsim; try lra. rewrite exp_nothing. lra.
    - destruct (step_similar c c' o p c1 Hs Hsim Hb) as (p' & c1' & Hs' & Hsim1 & [Hb1 Hb1'] & Hp & Hp' & Hpp).
      destruct (IH c1' Hsim1 Hb1) as (q' & c2' & Ht' & Hsim2 & [Hb2 Hb2'] & Hq & Hq' & Hqq).
      exists (p' * q'), c2'. split; [econstructor; eauto|]. split; [exact Hsim2|]. split; [lra|].
      split; [apply Rmult_le_pos; assumption|]. split; [apply Rmult_le_pos; assumption|].
      replace (B c - B c2) with ((B c - B c1) + (B c1 - B c2)) by ring. rewrite exp_plus.
      replace (p' * q' * (exp (B c - B c1) * exp (B c1 - B c2))) with ((p' * exp (B c - B c1))
        * (q' * exp (B c1 - B c2))) by ring.
      apply Rmult_le_compat; assumption.
  Qed.

  (** ** The theorem *)

  Variable empty : table.
  Variable start : program client.

  (** Variable 0 is the input, with scaling factor 1; every other variable holds
      the empty table, with 0. *)
  Definition init (T : table) (b : R) : configuration :=
    ⟨start, fun t => if Nat.eqb t 0 then (T, 1%nat) else (empty, 0%nat), b⟩.

  Theorem featherweight T T' b t p c : 0 <= b -> (distance T T' <= 1)%nat -> trace (init T b) t p c ->
    exists q c', trace (init T' b) t q c' /\ similar c c' /\ 0 <= B c <= b /\ p <= q * exp (b - B c).
  Proof.
    intros Hb Hd Ht. assert (Hsim : similar (init T b) (init T' b)).
    { repeat split; simpl; auto; destruct (Nat.eqb t0 0); simpl; auto. rewrite distance_refl. auto. }
    destruct (trace_similar t _ p c Ht _ Hsim Hb) as (q & c' & H1 & H2 & H3 & _ & _ & H4). exists q, c'. auto.
  Qed.

  (** ** The probabilities of the traces of one length sum to 1 *)

  (** The rules as functions. *)
  Definition chances (c : configuration) : Observation -> R :=
    match does client (P c) with
    | Silent => certain observation_dec Tau
    | Assign t F ts =>
        certain observation_dec (match scaling_factor (E c) F ts with Some _ => Tau | None => Refused end)
    | Query t f Qs e =>
        if Rlt_dec 0 e then
          if Rle_dec (INR (snd (E c t)) * e) (B c)
          then fun o => match o with Answers vs => parallel S f e (fst (E c t)) 0 Qs vs | _ => 0 end
          else certain observation_dec Bottom
        else certain observation_dec Refused
    | AskScale t => certain observation_dec (Scale (snd (E c t)))
    | AskBudget => certain observation_dec (Budget (B c))
    end.

  Definition after (c : configuration) (o : Observation) : configuration :=
    match does client (P c) with
    | Assign t F ts =>
        match scaling_factor (E c) F ts with
        | Some s => ⟨told client (P c) o, bind (E c) t (apply S F (tables (E c) ts), s), B c⟩
        | None => ⟨told client (P c) o, E c, B c⟩
        end
    | Query t f Qs e =>
        if Rlt_dec 0 e then
          if Rle_dec (INR (snd (E c t)) * e) (B c)
          then ⟨told client (P c) o, E c, B c - INR (snd (E c t)) * e⟩
          else ⟨told client (P c) o, E c, B c⟩
        else ⟨told client (P c) o, E c, B c⟩
    | _ => ⟨told client (P c) o, E c, B c⟩
    end.

  Lemma certain_self o : certain observation_dec o o = 1.
  Proof. unfold certain. destruct (observation_dec o o); [reflexivity|congruence]. Qed.

  Lemma step_chances c o p c1 : step c o p c1 -> chances c o = p /\ after c o = c1.
  Proof.
    intros H. destruct H; unfold chances, after; simpl; rewrite H; try rewrite H0; try (split;
      [apply certain_self|reflexivity]).
    - destruct (Rlt_dec 0 e); [|lra]. destruct (Rle_dec (INR (snd (env t)) * e) b); [auto|lra].
    - destruct (Rlt_dec 0 e); [|lra]. destruct (Rle_dec (INR (snd (env t)) * e) b); [lra|].
      split; [apply certain_self|reflexivity].
    - destruct (Rlt_dec 0 e); [lra|]. split; [apply certain_self|reflexivity].
  Qed.

  Lemma chances_step c o : chances c o <> 0 -> step c o (chances c o) (after c o).
  Proof.
    destruct c as [p env b]. unfold chances, after, certain. simpl. destruct (does client p) eqn:H.
    - destruct (observation_dec Tau o); [subst|tauto]. intros _. apply silent, H.
    - destruct (scaling_factor env F ts) eqn:Hs.
      + destruct (observation_dec Tau o); [subst|tauto]. intros _. eapply assign; eauto.
      + destruct (observation_dec Refused o); [subst|tauto]. intros _. eapply refuse_assign; eauto.
    - destruct (Rlt_dec 0 e).
      + destruct (Rle_dec (INR (snd (env t)) * e) b).
        * destruct o; try tauto. intros _. apply query; auto.
        * destruct (observation_dec Bottom o); [subst|tauto]. intros _. eapply query_bottom; eauto. lra.
      + destruct (observation_dec Refused o); [subst|tauto]. intros _. eapply refuse_query; eauto.
    - destruct (observation_dec (Scale (snd (env t))) o); [subst|tauto]. intros _. apply ask_scale, H.
    - destruct (observation_dec (Budget b) o); [subst|tauto]. intros _. apply ask_budget, H.
  Qed.

  Lemma chances_distribution c : distribution (chances c).
  Proof.
    unfold chances. destruct (does client (P c)); try apply certain_distribution.
    destruct (Rlt_dec 0 e); [|apply certain_distribution].
    destruct (Rle_dec (INR (snd (E c t)) * e) (B c)); [|apply certain_distribution].
    eapply distribution_ext; [|apply (distribution_rename (parallel S f e (fst (E c t)) 0 Qs) Answers
      (fun o => match o with Answers vs => Some vs | _ => None end))].
    - intros []; reflexivity.
    - intros o vs. destruct o; split; intros K; congruence.
    - apply parallel_distribution. assumption.
  Qed.

  (** The probability of a trace, if it has length n; else 0. *)
  Fixpoint probability (n : nat) (c : configuration) (t : list Observation) : R :=
    match n, t with
    | O, [] => 1
    | Datatypes.S n, o :: t => chances c o * probability n (after c o) t
    | _, _ => 0
    end.

  Lemma trace_probability c t p c1 : trace c t p c1 -> probability (length t) c t = p.
  Proof.
    induction 1 as [|c o p c1 t q c2 Hs Ht IH]; simpl; [reflexivity|].
    destruct (step_chances c o p c1 Hs) as [-> ->]. rewrite IH. reflexivity.
  Qed.

  Lemma probability_trace n : forall c t, probability n c t <> 0 ->
    length t = n /\ exists c1, trace c t (probability n c t) c1.
  Proof.
    induction n as [|n IH]; intros c [|o t] H; simpl in *; try tauto.
    - split; auto. exists c. constructor.
    - assert (H1 : chances c o <> 0) by (intros K; apply H; rewrite K; ring).
      assert (H2 : probability n (after c o) t <> 0) by (intros K; apply H; rewrite K; ring).
      destruct (IH _ _ H2) as (<- & c1 & Ht). split; auto. exists c1. econstructor; eauto. apply chances_step, H1.
  Qed.

  Theorem traces_sum_to_one n : forall c, distribution (probability n c).
  Proof.
    induction n as [|n IH]; intros c.
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution observation_dec (chances c)
        (fun o => probability n (after c o)))].
      + intros []; reflexivity.
      + apply chances_distribution.
      + intros o. apply IH.
  Qed.

  (** ** B-differential privacy, for every set of traces *)

  Lemma probability_nonneg n c t : 0 <= probability n c t.
  Proof. apply traces_sum_to_one. Qed.

  Theorem trace_dp T T' b n t : 0 <= b -> (distance T T' <= 1)%nat ->
    probability n (init T b) t <= probability n (init T' b) t * exp b.
  Proof.
    intros Hb Hd. destruct (Req_EM_T (probability n (init T b) t) 0) as [Z|Z].
    - rewrite Z. apply Rmult_le_pos; [apply probability_nonneg|left; apply exp_pos].
    - destruct (probability_trace n _ t Z) as (<- & c & Ht).
      destruct (featherweight T T' b t _ c Hb Hd Ht) as (q & c' & Ht' & _ & Hc & Hle).
      rewrite (trace_probability _ t q c' Ht'). eapply Rle_trans; [exact Hle|].
      apply Rmult_le_compat_l; [rewrite <- (trace_probability _ t q c' Ht'); apply probability_nonneg|].
      apply exp_mono. lra.
  Qed.

  Corollary event_dp T T' b n (event : list (list Observation)) : 0 <= b -> (distance T T' <= 1)%nat ->
    sum (probability n (init T b)) event <= exp b * sum (probability n (init T' b)) event.
  Proof.
    intros Hb Hd. rewrite <- sum_scale. apply sum_le. intros t _. rewrite Rmult_comm. apply trace_dp; assumption.
  Qed.
End Featherweight.
